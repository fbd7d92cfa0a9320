"""What `sluice check` says of folders, tables and connections, on this machine alone."""

import json

import pytest
import yaml
from deltalake import write_deltalake
from sluice.check import tables
from sluice.cli import app
from sluice.errors import SourceError
from sluice.spec import Step, TableSource
from sluice.storage import Paths
from typer.testing import CliRunner

FILES = {"kind": "files", "format": "json", "schema": {"id": "bigint", "at": "timestamp"}}
STEP = Step(name="s", source=FILES | {"path": "/landing"}, sink={"kind": "delta"})


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Call `sluice check` of a step; returns exit code and output."""
    monkeypatch.setenv("COLUMNS", "400")
    (tmp_path / "landing").mkdir()

    def call(*options: str, source: dict | None = None, **step: object) -> tuple[int, str]:
        chosen = FILES | {"path": str(tmp_path / "landing")} if source is None else source
        given = {"name": "s", "source": chosen, "sink": {"kind": "delta"}} | step
        file = tmp_path / "shop.yaml"
        file.write_text(yaml.safe_dump({"name": "shop", "steps": [given]}))
        root = [] if "--root" in options else ["--root", str(tmp_path / "root")]
        found = CliRunner().invoke(app, ["check", "--spec", str(file), *root, *options])
        return found.exit_code, found.output

    return call


def write_table(place, **settings) -> str:
    import pyarrow

    rows = pyarrow.table({"id": [1], "_batch_id": [0]})
    write_deltalake(str(place), rows, **settings)
    return str(place)


def test_everything_that_answers_is_a_line_and_the_exit_code_is_0(check, tmp_path):
    (tmp_path / "landing" / "1.json").write_text("{}")
    (tmp_path / "landing" / "2.csv").write_text("{}")
    source = FILES | {"path": str(tmp_path / "landing"), "pattern": "*.json"}
    code, said = check(source=source)
    assert code == 0
    assert [line.split()[0] for line in said.splitlines()] == ["ok"] * 3
    assert (
        "1 file like '*.json'" in said and "readable" in said and "the first run makes it" in said
    )


def test_a_folder_that_is_absent_fails_and_the_others_are_tried_all_the_same(check, tmp_path):
    code, said = check(source=FILES | {"path": str(tmp_path / "lading")})
    assert code == 6
    assert [line.split()[0] for line in said.splitlines()] == ["ok", "ok", "failed"]
    assert "the landing folder does not exist" in said and "Create it" in said


def test_an_empty_folder_is_well(check):
    code, said = check()
    assert code == 0 and "no name like '*' yet" in said


def test_a_root_that_cannot_be_written_fails(check, tmp_path):
    (tmp_path / "file").write_text("")
    code, said = check("--root", str(tmp_path / "file" / "root"))
    assert code == 6 and "cannot be written: Not a directory" in said


def test_a_target_and_a_sink_elsewhere_are_tried_where_they_lie(check, tmp_path):
    (tmp_path / "file").write_text("")
    sinks = [
        {"kind": "delta", "table": str(tmp_path / "file" / "table")},
        {"kind": "files", "path": str(tmp_path / "out")},
    ]
    code, said = check(sink=sinks)
    assert code == 6
    assert [line.split()[0] for line in said.splitlines()] == ["ok", "ok", "ok", "failed", "ok"]
    assert not (tmp_path / "out").exists()


def test_json_holds_the_same(check):
    code, said = check("--json")
    found = json.loads(said)
    assert code == 0
    assert [set(one) for one in found] == [{"part", "ok", "says", "seconds"}] * 3
    assert {one["ok"] for one in found} == {True}


def test_a_connection_that_the_environment_lacks_is_one_line(check):
    source = {"kind": "kafka", "connection": "brokers", "subscribe": "t", "format": "json"}
    code, said = check(source=source | {"schema": FILES["schema"]})
    assert code == 6
    assert said.count("AIRFLOW_CONN_BROKERS is not set") == 1 == said.count("failed")


def test_a_table_says_its_version_and_whether_it_keeps_its_changes(tmp_path):
    place = write_table(tmp_path / "t", configuration={"delta.enableChangeDataFeed": "true"})
    source = TableSource(kind="table", path=place, change_feed=True)
    assert tables.look_at_table(source, place) == "version 0, 2 columns, keeps its changes"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({"change_feed": True}, "keeps no feed of its changes"),
        ({"start": {"version": 7}}, "versions 0 to 0"),
        ({"path": "absent"}, "there is no Delta table"),
    ],
)
def test_a_table_that_a_run_could_not_read_fails(tmp_path, source, says):
    place = write_table(tmp_path / "t")
    given = TableSource(**{"kind": "table", "path": place} | source)
    with pytest.raises(SourceError, match=says):
        tables.look_at_table(given, str(tmp_path / given.path))


def test_columns_are_those_of_the_target_else_of_the_source_else_not_known(tmp_path):
    paths = Paths(str(tmp_path), "shop")
    assert tables.known_columns(STEP, paths) == {"id": "long", "at": "timestamp"}
    transformed = STEP.model_copy(update={"transform": "s.sql"})
    assert tables.known_columns(transformed, paths) is None
    write_table(paths.table("s"))
    assert tables.known_columns(transformed, paths) == {"id": "long"}
