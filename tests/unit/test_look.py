"""`sluice show`, `sql` and `open`: what runs have made, read without a JVM."""

import csv
import io
import json
import subprocess
import sys
import webbrowser
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake
from sluice.checkpoint import write_position
from sluice.checkpoint.position import Due, Position
from sluice.cli import app
from sluice.errors import ExitCode
from sluice.query import hide_values
from sluice.report import report_path, write_report
from sluice.storage import Paths
from typer.testing import CliRunner

from tests.unit.test_cli import make_report

NOON = datetime(2026, 1, 1, 12, 30, 0, 250000, tzinfo=UTC)
ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "at": pa.array([NOON, None], pa.timestamp("us", "UTC")),
        "local": pa.array([NOON.replace(tzinfo=None), None], pa.timestamp("us")),
        "day": pa.array([date(1, 1, 1), None], pa.date32()),
        "price": pa.array([Decimal("-1.50"), None], pa.decimal128(38, 2)),
        "bytes": pa.array([b"\x00\xff", None], pa.binary()),
        "who": pa.array([{"email": "b@example.org", "n": 1}, None]),
        "tags": pa.array([["a", None], []], pa.list_(pa.string())),
        "rates": pa.array([[("k", float("nan"))], []], pa.map_(pa.string(), pa.float64())),
        "email": pa.array(["a@example.org", None]),
        "note": pa.array(["x" * 100, '[red]tab\there\nnew \x1b[31m, "q"']),
        "_batch_key": pa.array(["visits/pages/g/0", "visits/pages/g/1"]),
    }
)
REFUSED = [
    '{"id":3,"email":"c@example.org","who":{"email":"d@example.org"}}',
    '{"id":4,"mail":"e@example.org"}',
    '{"id":5,"email":"f@exam',
]


def write_pipeline(folder: Path, name: str, **more: object) -> None:
    """A pipeline of one step `pages`."""
    columns = {"id": "bigint", "email": "string", "who": "struct<email: string, n: int>"}
    source = {"path": str(folder / "landing"), "format": "json", "schema": columns}
    entries = {"name": name, "steps": [{"name": "pages", "source": source}], **more}
    (folder / "pipelines" / f"{name}.yaml").write_text(yaml.safe_dump(entries))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a pipeline `visits`, that hides `email`, and its root."""
    (tmp_path / "pipelines").mkdir()
    write_pipeline(tmp_path, "visits", pii=["email"])
    monkeypatch.setenv("SLUICE_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("SLUICE_ROOT", str(tmp_path / "root"))
    return tmp_path


@pytest.fixture
def tables(project):
    """Its target with two rows, its quarantine table with three."""
    place = Paths.under(None, "visits")
    write_deltalake(place.table("pages"), ROWS)
    refused = {"row": REFUSED, "raw": [None, None, b"\xff"], "reasons": [["r"]] * 3}
    write_deltalake(place.quarantine("pages"), pa.table({**refused, "_row_hash": ["1", "2", "3"]}))
    return place


def call(*arguments: object, code: ExitCode = ExitCode.DONE):
    """Run `sluice` and return what it printed."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def records(result) -> list[dict]:
    """Printed JSON, an object a line."""
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_show_says_on_stderr_which_table_it_is_and_how_many_rows_it_holds(tables):
    shown = call("show", "visits", "--limit", 1)
    assert "visits.pages holds 2 row(s); 1 shown" in shown.stderr
    assert tables.table("pages") in shown.stderr
    assert len(shown.stdout.splitlines()) == 3


def test_every_type_has_a_json_form(tables):
    one, two = records(call("show", "visits", "--format", "json", "--pii"))
    assert one == {
        "id": 1,
        "at": "2026-01-01T12:30:00.250000Z",
        "local": "2026-01-01T12:30:00.250000",
        "day": "0001-01-01",
        "price": "-1.50",
        "bytes": "AP8=",
        "who": {"email": "b@example.org", "n": 1},
        "tags": ["a", None],
        "rates": {"k": "NaN"},
        "email": "a@example.org",
        "note": "x" * 100,
    }
    assert {k: v for k, v in two.items() if v is not None} == {
        "id": 2,
        "tags": [],
        "rates": {},
        "note": ROWS["note"][1].as_py(),
    }


def test_csv_is_read_back_whole(tables):
    text = call("show", "visits", "--format", "csv", "--pii").stdout
    one, two = csv.DictReader(io.StringIO(text, newline=""))
    assert one["note"], two["note"] == ROWS["note"].to_pylist()
    assert (json.loads(one["who"])["n"], json.loads(one["tags"])) == (1, ["a", None])
    assert (two["at"], two["email"]) == ("", "")


def test_a_table_shows_null_utc_and_one_line_a_row_whatever_a_value_says(tables):
    shown = call("show", "visits", "--all-columns").stdout
    header, _, one, two = shown.splitlines()
    assert "_batch_key" in header
    assert "2026-01-01 12:30:00.250000 UTC  2026-01-01 12:30:00.250000  0001-01-01" in one
    assert f"{'x' * 59}…" in one
    assert "NULL" in two
    assert r'[red]tab\there\nnew \x1b[31m, "q"' in two


def test_columns_of_the_engine_are_hidden_unless_they_are_asked_for(tables):
    assert "_batch_key" not in call("show", "visits").stdout
    assert "_row_hash" not in call("show", "visits", "--quarantine").stdout
    assert "visits/pages/g/0" in call("show", "visits", "--all-columns").stdout


@pytest.mark.parametrize("format_", ["table", "csv", "json"])
@pytest.mark.parametrize("kind", [None, "--quarantine"])
def test_no_value_of_a_pii_column_is_shown_unasked(tables, kind, format_):
    arguments = ["show", "visits", "--all-columns", "--format", format_, *([kind] if kind else [])]
    hidden = call(*arguments)
    assert "@" not in hidden.stdout
    assert "f@exam" not in hidden.stdout
    assert "hidden are email; `--pii` shows them" in hidden.stderr
    assert "@example.org" in call(*arguments, "--pii").stdout


def test_of_a_refused_record_what_is_not_pii_is_shown_where_the_fields_can_be_told(tables):
    rows = [
        row["row"] for row in records(call("show", "visits", "--quarantine", "--format", "json"))
    ]
    told = '{"id":3,"email":"hidden: pii","who":{"email":"hidden: pii"}}'
    assert Counter(rows) == Counter([told, "hidden: pii", "hidden: pii"])


@pytest.mark.parametrize("refused", [True, False])
def test_key_headers_and_value_of_a_topic_s_record_are_hidden_with_the_pii_columns(refused):
    record = {"topic": "t", "offset": 7, "key": "a@example.org", "headers": None, "value": "a@"}
    origin = json.dumps(record) if refused else record
    ((told,),) = [hide_values(["_source"], (origin,), ["email"])]
    told = json.loads(told) if refused else told
    hidden = {"key": "hidden: pii", "headers": None, "value": "hidden: pii"}
    assert told == {"topic": "t", "offset": 7, **hidden}
    assert hide_values(["_source"], (origin,), []) == (origin,)
    assert hide_values(["_source"], ('{"topic": "t", "key": "a@ex',), ["email"]) == ("hidden: pii",)
    assert hide_values(["_source"], ("/landing/1.json",), ["email"]) == ("/landing/1.json",)


def test_a_record_is_hidden_whole_where_a_transform_made_the_pii_column(tables, project):
    write_pipeline(project, "visits", pii=["contact"])
    path = project / "pipelines" / "visits.yaml"
    entries = yaml.safe_load(path.read_text())
    entries["steps"][0]["transform"] = "visits.sql"
    path.write_text(yaml.safe_dump(entries))
    (project / "pipelines" / "visits.sql").write_text("SELECT id, email AS contact FROM source")
    rows = records(call("show", "visits", "--quarantine", "--format", "json"))
    assert Counter(row["row"] for row in rows) == Counter({"hidden: pii": 3})


def test_a_condition_chooses_rows(tables):
    shown = call("show", "visits", "--where", "id > 1 -- and no more", "--format", "json")
    assert [row["id"] for row in records(shown)] == [2]
    assert "1 shown that meet the condition" in shown.stderr
    wrong = call("show", "visits", "--where", "idd > 1", code=ExitCode.TERMINAL)
    assert "No field named idd. Did you mean 'visits.pages.id'?" in wrong.stderr


def test_what_is_not_there_is_said_with_what_to_do(project):
    never = call("show", "visits", code=ExitCode.TERMINAL).stderr
    assert "the pipeline has not run yet (got 'visits.pages')" in never
    assert "`sluice run visits`" in never
    write_report(make_report(), Paths.under(None, "visits").reports())
    late = call("show", "visits", "--late", code=ExitCode.TERMINAL).stderr
    assert "no run wrote a row there yet (got 'visits.pages__late')" in late
    other = call("show", "visits", "--step", "page", code=ExitCode.TERMINAL).stderr
    assert "--step: no such step (got 'page'). There are: pages" in other
    both = call("show", "visits", "--late", "--quarantine", code=ExitCode.TERMINAL).stderr
    assert "only one of these can be shown. Leave one out" in both


def test_the_count_leaves_out_what_the_log_does_not_say(project):
    from deltalake import DeltaTable

    path = Paths.under(None, "visits").table("pages")
    write_deltalake(path, ROWS)
    log = Path(path) / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        action.get("add", {}).pop("stats", None)
    log.write_text("\n".join(map(json.dumps, actions)))
    assert DeltaTable(path).version() == 0
    assert "visits.pages; 2 shown" in call("show", "visits").stderr


def test_undelivered_lists_the_batches_that_sinks_lack_oldest_first(project, monkeypatch):
    jdbc = {"kind": "jdbc", "url": "jdbc:postgresql://db.example.org/x", "user": "u"}
    jdbc |= {"password": "${PW}", "table": "t"}
    path = project / "pipelines" / "visits.yaml"
    entries = yaml.safe_load(path.read_text())
    entries["steps"][0]["sink"] = [{"kind": "delta"}, jdbc]
    monkeypatch.setenv("PW", "secret")
    path.write_text(yaml.safe_dump(entries))
    nothing = call("show", "visits", "--undelivered")
    assert (nothing.stdout, "lack 0 row(s) of 0 batch(es)" in nothing.stderr) == ("", True)
    due = [
        Due(key=f"visits/pages/g/{n}", rows=n, since=NOON.replace(day=9 - n), said="away")
        for n in (1, 2)
    ]
    place = Paths.under(None, "visits").position("pages", "jdbc t")
    write_position(place, Position(sink="jdbc t", due=due))
    shown = call("show", "visits", "--undelivered", "--format", "json")
    assert "visits: sinks lack 3 row(s) of 2 batch(es)" in shown.stderr
    assert records(shown)[0] == {
        "sink": "jdbc t",
        "key": "visits/pages/g/2",
        "rows": 2,
        "since": "2026-01-07T12:30:00.250000Z",
        "why": "away",
    }
    assert len(records(shown)) == 2


def test_sql_joins_tables_of_every_pipeline_and_shows_data_as_it_is(tables, project):
    write_pipeline(project, "shop")
    write_deltalake(Paths.under(None, "shop").table("pages"), pa.table({"id": [1, 1, 7]}))
    query = (
        "SELECT v.id, v.email FROM shop.pages s JOIN visits.pages v ON v.id = s.id "
        "JOIN visits.pages__quarantine q ON true"
    )
    rows = records(call("sql", query, "--format", "json"))
    assert Counter(map(tuple, map(dict.values, rows))) == Counter({(1, "a@example.org"): 6})


def test_no_column_is_lost_where_two_have_one_name(tables):
    query = "SELECT a.id, b.id FROM pages a JOIN pages b ON b.id = 3 - a.id"
    assert call("sql", query, "--format", "csv").stdout.splitlines()[0] == "id,id"
    said = call("sql", query, "--format", "json", code=ExitCode.TERMINAL).stderr
    assert "two columns have one name (got 'id'). Write `AS another_name`" in said


def test_a_name_that_two_pipelines_have_is_not_guessed(tables, project):
    write_pipeline(project, "shop")
    said = call("sql", "SELECT * FROM pages", code=ExitCode.TERMINAL).stderr
    assert "no single table has this name (got 'pages')" in said
    assert "write shop.pages or visits.pages" in said


def test_a_table_that_does_not_exist_gets_the_list_and_the_nearest(tables):
    said = call("sql", "SELECT * FROM visits.page", code=ExitCode.TERMINAL).stderr
    assert "no table has this name (got 'visits.page'). Did you mean 'visits.pages'?" in said
    assert "There are: visits.pages, visits.pages__quarantine" in said
    late = call("sql", "SELECT * FROM pages__late", code=ExitCode.TERMINAL).stderr
    assert "the table is not there yet (got 'pages__late'). `sluice run visits`" in late


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT id FORM pages", "SQL: Expected: end of statement, found: pages at Line: 1"),
        ("SELECT nope(id) FROM pages", "SQL: Invalid function 'nope'"),
        ("SELECT 1 / (id - 1) FROM pages", "SQL: Divide by zero"),
        ("SELECT CAST(note AS INT) FROM pages", "SQL: Cannot cast string"),
    ],
)
def test_what_the_engine_refuses_is_one_sentence(tables, query, said):
    stderr = call("sql", query, code=ExitCode.TERMINAL).stderr
    assert stderr.startswith(said)
    assert len(stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE pages",
        "INSERT INTO pages SELECT * FROM pages",
        "WITH a AS (SELECT 1) INSERT INTO pages SELECT * FROM pages",
        "/* SELECT */ COPY (SELECT 1) TO '{folder}/copy.csv'",
        "-- SELECT\nEXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/copy.csv'",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/copy.csv'",
    ],
)
def test_sql_changes_nothing(tables, project, statement):
    before = sorted(project.rglob("*"))
    call("sql", "--", statement.format(folder=project), code=ExitCode.TERMINAL)
    assert sorted(project.rglob("*")) == before


def test_a_query_may_begin_with_a_comment_or_a_bracket(tables):
    query = "-- how many\n/* rows */ (SELECT count(*) AS n FROM pages)"
    assert records(call("sql", "--format", "json", "--", query)) == [{"n": 2}]


def test_a_limit_and_the_count_read_no_more_of_a_large_table_than_they_need(project):
    path = Paths.under(None, "visits").table("pages")
    for number in range(30):
        write_deltalake(path, pa.table({"id": [number] * 10}), mode="append")
    # Which file comes first is not said: with all but one of them gone, each try but one fails.
    files = sorted(Path(path).glob("*.parquet"))
    whole = {file: file.read_bytes() for file in files}
    read = 0
    for file in files:
        for other in files:
            other.write_bytes(b"" if other == file else whole[other])
        read += CliRunner().invoke(app, ["show", "visits", "--limit", "3"]).exit_code != 0
    assert read <= 4
    for file in files:
        file.write_bytes(whole[file])
    assert "holds 300 row(s); 3 shown" in call("show", "visits", "--limit", 3).stderr


def test_a_file_that_is_gone_is_not_the_query_s_fault(tables):
    for file in Path(tables.table("pages")).glob("*.parquet"):
        file.unlink()
    said = call("sql", "SELECT * FROM visits.pages", code=ExitCode.TERMINAL).stderr
    assert said.startswith(f"{tables.table('pages')}: a file of a table cannot be read: ")


def test_open_prints_the_path_and_opens_it(project, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(opened.append(address)) or True)
    assert "no run has been reported yet" in call("open", "visits", code=ExitCode.TERMINAL).stderr
    folder = Paths.under(None, "visits").reports()
    write_report(make_report(run_id="a b:1"), folder)
    page = report_path(folder, "a b:1", "html")
    assert call("open", "visits").stdout.strip() == str(page)
    assert call("open", "visits", "--run", "a b:1").stdout.strip() == str(page)
    assert opened == [page.as_uri()] * 2
    said = call("open", "visits", "--run", "nope", code=ExitCode.TERMINAL).stderr
    assert "no report of this run (got 'nope')" in said
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    assert "no browser could be opened" in call("open", "visits").stderr


def test_a_root_in_a_bucket_is_read_by_the_way_that_the_environment_names(project, s3, monkeypatch):
    monkeypatch.setenv("SLUICE_ROOT", s3.create_bucket("look"))
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("a bucket has no page"))
    # Not through the proxy: it is a thread of this process, and the reader waits with the lock that
    # Python's threads share.
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.direct)
    options = {"AWS_ALLOW_HTTP": "true", "conditional_put": "etag"}
    path = Paths.under(None, "visits").table("pages")
    write_deltalake(path.replace("s3a:", "s3:"), ROWS, storage_options=options)
    assert [row["id"] for row in records(call("show", "visits", "--format", "json"))] == [1, 2]
    write_report(make_report(), Paths.under(None, "visits").reports())
    assert call("open", "visits").stdout.strip() == "s3a://look/reports/visits/r1.html"


_LOADED = """
import sys
from sluice.cli import app
try:
    app(["show", "visits"])
except SystemExit:
    pass
print([name for name in ("pyspark", "pyarrow", "pandas", "numpy") if name in sys.modules])
"""


def test_show_loads_no_heavy_library(tables):
    done = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
