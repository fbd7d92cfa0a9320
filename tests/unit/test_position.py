"""What a further sink is known to have: kept batch by batch, changed by people with a reason."""

from datetime import UTC, datetime

import pytest
import yaml
from sluice.checkpoint import Due, Position, Sent, read_position, write_position
from sluice.cli.app import app
from sluice.errors import ExitCode, PreflightError
from sluice.storage import Paths
from typer.testing import CliRunner

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SINK = "files out"


def due(number: int, rows: int = 1, generation: str = "p/s/g1", **more: object) -> Due:
    return Due(key=f"{generation}/{number}", rows=rows, since=NOW, **more)


def keys(position: Position) -> list[str]:
    return [batch.key for batch in position.due]


def test_a_batch_is_due_once_however_often_it_is_told():
    position = Position(sink=SINK).owing([due(0), due(1)])
    assert keys(position) == ["p/s/g1/0", "p/s/g1/1"]
    sent = Sent(key="p/s/g1/0", rows=1, run_id="r", home="p/s/g1")
    position = position.settled(sent).owing([due(0), due(1)])
    assert keys(position) == ["p/s/g1/1"] and position.sent == [sent]


def test_a_batch_without_rows_is_known_and_never_due():
    position = Position(sink=SINK).owing([due(0, rows=0)])
    assert position.knows("p/s/g1/0") and not position.knows("p/s/g1/1")
    assert not position.due


def test_another_checkpoint_counts_its_batches_for_itself():
    position = Position(sink=SINK).owing([due(7)])
    assert not position.knows("p/s/g2/0")
    assert keys(position.owing([due(0, generation="p/s/g2")])) == ["p/s/g1/7", "p/s/g2/0"]


def test_what_is_asked_for_is_due_also_where_it_was_sent_or_given_up():
    position = Position(sink=SINK).owing([due(0), due(1), due(2)]).without("p/s/g1/1", "no use")
    position = position.settled(Sent(key="p/s/g1/0", rows=1, run_id="r", home="p/s/g1"))
    asked = position.demanding([due(0, again=True), due(1, again=True)])
    assert keys(asked) == ["p/s/g1/0", "p/s/g1/1", "p/s/g1/2"] and not asked.given_up
    assert [batch.again for batch in asked.due] == [True, True, False]


def test_what_the_target_had_before_it_was_followed_counts_as_had_only_once_it_is_asked_for():
    position = Position(sink=SINK, seen={"p/s/g1": 4}, before={"p/s/g1": 4})
    position = position.owing([due(5), due(6)])
    assert position.followed == {"p/s/g1": range(5, 7)}
    assert position.demanding([due(3), due(4)]).followed == {"p/s/g1": range(3, 7)}
    assert position.demanding([due(0)]).followed == {"p/s/g1": range(7)}


def test_the_rows_a_sink_ever_got_are_counted():
    position = Position(sink=SINK).owing([due(0, rows=0), due(1), due(2)])
    assert position.got == 0
    for number, rows in ((1, 3), (2, 4)):
        position = position.settled(
            Sent(key=f"p/s/g1/{number}", rows=rows, run_id="r", home="p/s/g1")
        )
    assert position.got == 7


@pytest.mark.parametrize(
    "text", ['{"sink": "files o', '{"sink": "files out", "of_a_newer_version": 1}', ""]
)
def test_a_position_that_is_cut_or_of_a_newer_version_is_refused_with_a_way_out(tmp_path, text):
    path = tmp_path / "position.json"
    path.write_text(text)
    with pytest.raises(PreflightError, match="cannot be read.*move it away.*--all"):
        read_position(str(path))


@pytest.fixture
def pipeline(tmp_path):
    """A pipeline whose one further sink lacks two batches."""
    file = tmp_path / "p.yaml"
    (tmp_path / "in").mkdir()
    step = {
        "name": "s",
        "source": {"path": str(tmp_path / "in"), "format": "json", "schema": {"id": "string"}},
        "sink": [{"kind": "delta"}, {"kind": "files", "path": "out"}],
    }
    file.write_text(yaml.safe_dump({"name": "p", "steps": [step]}))
    lacking = Position(sink=SINK).owing([due(3, rows=20), due(4, rows=5, said="disk full")])
    write_position(Paths(str(tmp_path / "root"), "p").position("s", SINK), lacking)
    return file


def sluice(pipeline, *words: str):
    root = pipeline.parent / "root"
    return CliRunner().invoke(app, [*words, "--spec", str(pipeline), "--root", str(root)])


def test_a_plan_names_each_batch_that_a_sink_lacks_and_why(pipeline):
    said = sluice(pipeline, "plan").output
    assert "files out lacks 20 row(s) of p/s/g1/3 since 2026-01-01 00:00:00 UTC" in said
    assert "files out lacks 5 row(s) of p/s/g1/4 since 2026-01-01 00:00:00 UTC: disk full" in said


def test_a_batch_is_given_up_with_a_reason_that_stays_readable(pipeline):
    words = ("give-up", "--sink", SINK, "--reason", "the shop is closed")
    wrong = sluice(pipeline, *words, "--key", "p/s/g1/9")
    assert wrong.exit_code == ExitCode.TERMINAL
    assert "It lacks: p/s/g1/3, p/s/g1/4" in wrong.output
    done = sluice(pipeline, *words, "--key", "p/s/g1/4")
    assert done.exit_code == ExitCode.DONE and "5 row(s) of p/s/g1/4" in done.output
    said = " ".join(sluice(pipeline, "plan").output.split())
    assert "p/s/g1/4, given up at 20" in said and "the shop is closed" in said


@pytest.mark.parametrize("verb", ["give-up", "deliver"])
def test_a_sink_that_no_step_has_is_named_with_those_there_are(pipeline, verb):
    more = ("--key", "p/s/g1/3", "--reason", "r") if verb == "give-up" else ()
    done = sluice(pipeline, verb, "--sink", "jdbc orders", *more)
    assert done.exit_code == ExitCode.TERMINAL
    assert "no step has such a sink" in done.output and SINK in done.output
