"""Which tests `make test` runs."""

import pytest

from tests import run


def make_tests(folder, *names):
    """A folder of tests with these files."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


def test_the_tests_of_the_users_pipelines_are_a_layer(tmp_path):
    tests = make_tests(tmp_path, "unit/test_a.py", "pipelines/test_orders.py")
    assert run.find_layers(tests) == [("unit",), ("pipelines",)]


def test_a_layer_without_tests_is_left_out(tmp_path):
    tests = make_tests(tmp_path, "unit/test_a.py", "e2e/test_b.py", "pipelines/conftest.py")
    assert run.find_layers(tests) == [("e2e",), ("unit",)]


def test_a_folder_of_tests_that_no_layer_runs_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="tests/mine: no layer runs these tests"):
        run.find_layers(make_tests(tmp_path, "mine/test_a.py"))


def test_every_folder_of_tests_is_run():
    assert run.find_layers()


def test_the_tests_over_states_run_once_beside_the_others_of_their_folder():
    folder = run.TESTS / "spark"
    others = run.list_arguments(("spark",))
    assert others[0] == str(folder)
    left_out = {path for name in others[1:] for path in run.TESTS.glob(_below_tests(name))}
    apart = {path for names in run.APART for name in names for path in run.TESTS.glob(name)}
    listed = [path for names in run.APART for path in run.list_arguments(names)]
    assert left_out == apart == set(map(run.Path, listed))
    assert len(listed) == len(apart)
    assert apart and apart < set(folder.glob("test_*.py"))


def _below_tests(option: str) -> str:
    """`spark/test_a.py` of an option that leaves files out."""
    return option.partition("=")[2].removeprefix(f"{run.TESTS}/")
