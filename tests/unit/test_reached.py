"""How far inputs have come is noted batch by batch, and a batch that comes again starts over."""

from sluice.checkpoint import note_reached, read_reached


def moments(checkpoint, batch=None):
    return {name: one.ms for name, one in read_reached(str(checkpoint), batch).items()}


def test_an_input_is_where_its_newest_row_took_it_and_knows_the_run(tmp_path):
    note_reached(str(tmp_path), 0, {"a": 10, "b": 5}, "one")
    note_reached(str(tmp_path), 1, {"a": 20, "b": 5}, "two")
    note_reached(str(tmp_path), 2, {"a": 15}, "three")
    found = read_reached(str(tmp_path))
    assert {name: (one.ms, one.run_id) for name, one in found.items()} == {
        "a": (20, "two"),
        "b": (5, "one"),
    }


def test_a_batch_that_comes_again_with_other_rows_forgets_its_first_try(tmp_path):
    note_reached(str(tmp_path), 0, {"a": 10}, "one")
    note_reached(str(tmp_path), 1, {"a": 99}, "one")
    assert (moments(tmp_path, 1), moments(tmp_path, 2)) == ({"a": 10}, {"a": 99})
    note_reached(str(tmp_path), 1, {"a": 10}, "two")  # its row is refused by now
    assert (moments(tmp_path), moments(tmp_path, 2)) == ({"a": 10}, {"a": 10})
    note_reached(str(tmp_path), 1, {"a": 12}, "three")
    assert (moments(tmp_path, 1), moments(tmp_path)) == ({"a": 10}, {"a": 12})


def test_nothing_is_known_before_the_first_row(tmp_path):
    assert moments(tmp_path) == {}
