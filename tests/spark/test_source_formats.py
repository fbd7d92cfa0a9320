"""Every format, encoding, option and folder layout that a file source reads.

And that the probe and Spark see the same files.
"""

import bz2
import gzip
import io
import json
import random
from collections import Counter
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from pyarrow import orc, parquet
from sluice.backlog import list_files, measure_pipeline
from sluice.errors import ExitCode
from sluice.spec import Window, load_pipeline

from tests.spark.factories import Project, details

PAIR = {"a": "bigint", "s": "string"}
FIRST_DAY = Window(start=datetime(2026, 1, 31, tzinfo=UTC), end=datetime(2026, 2, 1, tzinfo=UTC))


def as_parquet(**columns) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def as_orc(**columns) -> bytes:
    buffer = io.BytesIO()
    orc.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def as_avro(spark, folder, select: str) -> bytes:
    spark.sql(select).coalesce(1).write.format("avro").save(str(folder))
    return next(folder.glob("*.avro")).read_bytes()


def long(*values: int) -> pa.Array:
    return pa.array(values, pa.int64())


# --- formats that carry their schema ---


@pytest.mark.parametrize(("format_", "encode"), [("parquet", as_parquet), ("orc", as_orc)])
def test_parquet_and_orc_are_matched_by_name_and_broken_files_are_refused(
    spark, tmp_path, format_, encode
):
    project = Project(spark, tmp_path, {"format": format_, "schema": PAIR})
    good = encode(a=long(1), s=["x"])
    project.land("good", good)
    project.land(
        "more", encode(z=pa.array([None, 5], pa.int32()), s=["x", "y"], w=["q", None], a=long(2, 3))
    )
    project.land("wider", encode(a=long(4), s=["x"], z=long(6)))
    project.land("less", encode(a=long(5)))
    project.land("case", encode(A=long(6), S=["c"]))
    project.land("int32", encode(a=pa.array([7], pa.int32()), s=["x"]))
    project.land("cut", good[:-20])
    project.land("text", "no such format\n" * 20)
    project.land("empty", "")
    report = project.run()
    assert (report.status, report.error) == ("done", None)
    assert project.rows("a", "s", "_rescued") == Counter(
        [
            (1, "x", None),
            (2, "x", '{"w":"q"}'),
            (3, "y", '{"z":5}'),
            (4, "x", '{"z":6}'),
            (5, None, None),
            (6, "c", None),
            (7, "x", None),
        ]
    )
    assert {row._source.rsplit("/", 1)[-1]: row.reasons for row in project.quarantine()} == {
        "cut": ["unreadable_file"],
        "text": ["unreadable_file"],
    }
    assert any(
        "lack and read as NULL: s (first: less)" in warning for warning in report.steps[0].warnings
    )

    wrong = project.land("wrong", encode(a=["text"], s=["x"]))
    report = project.run()
    assert report.exit_code == ExitCode.TERMINAL
    assert report.error.startswith(f"{wrong}: ")
    assert "schema" in report.error
    assert "\n" not in report.error
    wrong.unlink()
    project.land("next", encode(a=long(8), s=["x"]))
    assert project.run().counts.written == 1


def test_avro_is_matched_by_name_and_broken_files_are_refused(spark, tmp_path):
    project = Project(spark, tmp_path, {"format": "avro", "schema": PAIR})
    good = as_avro(spark, tmp_path / "1", "SELECT 1L AS a, 'x' AS s")
    project.land("good.avro", good)
    project.land("more.avro", as_avro(spark, tmp_path / "2", "SELECT 5 AS z, 2L AS a, 'x' AS s"))
    project.land("less.avro", as_avro(spark, tmp_path / "3", "SELECT 3L AS a"))
    project.land("cut.avro", good[:-20])
    project.land("text.avro", "no such format")
    project.land("empty.avro", "")
    report = project.run()
    assert (report.status, report.error) == ("done", None)
    assert project.rows("a", "s", "_rescued") == Counter(
        [(1, "x", None), (2, "x", '{"z":5}'), (3, None, None)]
    )
    assert {row._source.rsplit("/", 1)[-1]: row.reasons for row in project.quarantine()} == {
        "cut.avro": ["unreadable_file"],
        "text.avro": ["unreadable_file"],
    }


@pytest.mark.parametrize(
    ("format_", "content", "named"),
    [
        ("parquet", as_parquet(a=long(1), s=["x"], z=long(2)), "z"),
        ("csv", b"a,s,z\n1,x,2\n", "z"),
        ("json", b'{"a":1,"s":"x","z":2}\n', "z"),
    ],
)
def test_undeclared_fields_stop_the_run_where_the_policy_is_fail(
    spark, tmp_path, format_, content, named
):
    project = Project(
        spark, tmp_path, {"format": format_, "schema": PAIR, "unknown_fields": "fail"}
    )
    bad = project.land("bad", content)
    report = project.run()
    assert (report.status, report.exit_code) == ("failed", ExitCode.TERMINAL)
    assert "the schema does not declare" in report.error
    assert f"{named}" in report.error
    assert report.counts.read == 0
    bad.write_bytes(
        {
            "parquet": as_parquet(a=long(1), s=["x"]),
            "csv": b"a,s\n1,x\n",
            "json": b'{"a":1,"s":"x"}\n',
        }[format_]
    )
    assert project.run().counts.written == 1


def test_undeclared_fields_are_left_out_where_the_policy_is_ignore(spark, tmp_path):
    project = Project(
        spark, tmp_path, {"format": "json", "schema": PAIR, "unknown_fields": "ignore"}
    )
    project.land("a.json", '{"a":1,"z":2}\n{"a":3,"a":4}\n{"a":5}{"a":6}\n')
    assert project.run().counts.written == 1
    assert "_rescued" not in project._table(project.paths.table("s")).columns
    assert set(details(project)) == {'{"a":3,"a":4}', '{"a":5}{"a":6}'}


def test_files_that_disagree_on_an_undeclared_column_are_an_error_that_names_it(spark, tmp_path):
    project = Project(spark, tmp_path, {"format": "parquet", "schema": PAIR})
    project.land("one", as_parquet(a=long(1), s=["x"], z=["text"]))
    project.land("two", as_parquet(a=long(2), s=["x"], z=long(5)))
    report = project.run()
    assert report.exit_code == ExitCode.TERMINAL
    assert "files disagree on the type of the undeclared column 'z'" in report.error


# --- records that span lines ---


def test_csv_values_may_hold_line_breaks_and_keep_header_and_raw_text(spark, tmp_path):
    project = Project(
        spark,
        tmp_path,
        {
            "format": "csv",
            "multi_line": True,
            "schema": {"id": "int", "name": "string", "price": "double"},
        },
    )
    project.land("good.csv", 'id,name,price\r\n1,"two\r\nlines",1.5\r\n\r\n2,b,2.5\r\n')
    project.land("reordered.csv", '"price",id,name,"mo\nre"\n1.5,3,"r\n\n ""q""",x\n')
    project.land("open.csv", 'id,name,price\n4,a,1\n5,"open,1\n6,b,2\n')
    project.land("latin.csv", "id,name,price\n7,Mü,1\n".encode("latin-1"))
    project.land(
        "pipe.csv.gz", gzip.compress(b'id,name,price\n8,5" pipe,3\n9,"",1\nx,"bad\nnumber",1\n')
    )
    project.land("empty.csv", "")
    assert project.run().error is None
    assert project.rows("id", "name", "price", "_rescued") == Counter(
        [
            (1, "two\r\nlines", 1.5, None),
            (2, "b", 2.5, None),
            (3, 'r\n\n "q"', 1.5, '{"mo\\nre":"x"}'),
            (4, "a", 1.0, None),
            (8, '5" pipe', 3.0, None),
            (9, None, 1.0, None),
        ]
    )
    assert set(details(project)) == {
        '5,"open,1\n6,b,2\n',
        "id,name,price\n7,M\ufffd,1\n",
        'x,"bad\nnumber",1',
    }


def test_lines_that_begin_no_record_belong_to_the_one_above_them(spark, tmp_path):
    source = {"format": "text", "schema": {"value": "string"}, "line_start_pattern": "^[0-9]{2}:"}
    project = Project(spark, tmp_path, source)
    project.land("trace.log", "10: a\n11: failed\njava.io.IOException: 12: no\n\tat b\n12: c\n")
    project.land("windows.log", "10: a\r\n  more\r\n11: b\r\n")
    project.land("rotated.log.gz", gzip.compress(b"\tat the.end.of(a.trace)\n\n13: d"))
    project.land("unended.log", "14: e\n\tat f")
    project.land("blank.log", "\n \n")
    project.land("latin.log", "15: M\u00fc\n16: g\n\tat \u00e4\n17: h\n".encode("latin-1"))
    report = project.run()
    assert report.error is None
    assert project.rows("value") == Counter(
        [
            ("10: a",),
            ("11: failed\njava.io.IOException: 12: no\n\tat b",),
            ("12: c",),
            ("10: a\r\n  more",),
            ("11: b",),
            ("\tat the.end.of(a.trace)\n",),
            ("13: d",),
            ("14: e\n\tat f",),
            ("17: h",),
        ]
    )
    broken = {row.row: bytes(row.raw) for row in project.quarantine()}
    assert broken == {"15: M\ufffd": b"15: M\xfc", "16: g\n\tat \ufffd": b"16: g\n\tat \xe4"}
    assert report.counts.read == 11


def test_json_documents_may_span_lines(spark, tmp_path):
    columns = {"a": "int", "n": "struct<x:int,y:array<string>>", "m": "map<string,int>"}
    project = Project(spark, tmp_path, {"format": "json", "multi_line": True, "schema": columns})
    project.land(
        "array.json",
        '[\n{"a":1,\n"n":{"x":1,"y":["p"],"undeclared":3}},\n{"a":2,"m":{"k":5},"u":1}, null, 5, '
        '{"a":"x"}, {"a":3,"a":4}]\n',
    )
    project.land("object.json", '{\n"a":5}\n')
    project.land("broken.json", '[{"a":6},\n{"a":')
    project.land("blank.json", " \n")
    project.land("none.json", "[]")
    project.land("two.json", '{"a":7}\n{"a":8}')
    project.land("arrays.json", '[{"a":7}]\n[{"a":8}]')
    project.land("bom.json", b'\xef\xbb\xbf[{"a":9}]')
    assert project.run().error is None
    assert project.rows("a", "n.x", "_rescued") == Counter(
        [(1, 1, None), (2, None, '{"u":"1"}'), (5, None, None), (9, None, None)]
    )
    assert set(details(project)) == {
        "null",
        "5",
        '{"a":"x"}',
        '{"a":3,"a":4}',
        '[{"a":6},\n{"a":',
        '{"a":7}\n{"a":8}',
        '[{"a":7}]\n[{"a":8}]',
    }


# --- encodings ---


@pytest.mark.parametrize(
    ("encoding", "contents", "rows", "refused"),
    [
        ("ISO-8859-1", ["a,s\r\n1,Mü\r\n".encode("latin-1")], [(1, "Mü")], 0),
        ("windows-1252", ["a,s\n1,€\n".encode("cp1252")], [(1, "€")], 0),
        (
            "UTF-16",
            [
                "s,a\r\nMü,1\r\n".encode("utf-16"),
                b"\xfe\xff" + "a,s\n2,€\n".encode("utf-16-be"),
                b"\xff\xfeodd",
            ],
            [(1, "Mü"), (2, "€")],
            1,
        ),
        ("UTF-16LE", ["\ufeffa,s\n1,Ċ\u0a00Ā\n".encode("utf-16-le")], [(1, "Ċ\u0a00Ā")], 0),
    ],
)
def test_a_declared_encoding_is_decoded_header_and_rows(
    spark, tmp_path, encoding, contents, rows, refused
):
    project = Project(spark, tmp_path, {"format": "csv", "encoding": encoding, "schema": PAIR})
    for number, content in enumerate(contents):
        project.land(f"{number}.csv", content)
    report = project.run()
    assert (report.error, report.counts.quarantined) == (None, refused)
    assert project.rows("a", "s") == Counter(rows)


# --- options, text, compression, bounds ---


def test_sparks_own_options_are_passed_through(spark, tmp_path):
    options = {
        "sep": ";",
        "quote": "'",
        "dateFormat": "dd.MM.yyyy",
        "timestampFormat": "dd.MM.yyyy HH:mm",
        "nullValue": "-",
        "comment": "#",
    }
    columns = {"d": "date", "t": "timestamp", "s": "string"}
    project = Project(spark, tmp_path, {"format": "csv", "options": options, "schema": columns})
    project.land(
        "a.csv",
        "# made by hand\nt;d;s\n#01.01.2026;a comment\n01.02.2026 03:04;31.12.2025;'x;y'\n-;-;-\n",
    )
    assert project.run().error is None
    assert project.rows("d", "t", "s") == Counter(
        [(date(2025, 12, 31), datetime(2026, 2, 1, 3, 4), "x;y"), (None, None, None)]
    )
    assert not project.quarantine()


def test_csv_without_header_is_read_by_position(spark, tmp_path):
    project = Project(spark, tmp_path, {"format": "csv", "header": False, "schema": PAIR})
    project.land("a.csv", "1,x\n2,y,z\n")
    project.run()
    assert project.rows("a", "s") == Counter([(1, "x")])
    assert set(details(project)) == {"2,y,z"}


def test_text_is_one_row_a_line_and_a_batch_holds_no_more_files_than_allowed(spark, tmp_path):
    project = Project(
        spark, tmp_path, {"format": "text", "max_files_per_batch": 2, "schema": {"value": "string"}}
    )
    for number, content in enumerate(
        [
            b"one\n\ntwo\r\n",
            gzip.compress(b"three\n"),
            bz2.compress(b"four\n"),
            b"five",
            "Mü\n".encode("latin-1"),
        ]
    ):
        project.land(f"{number}.txt" + {1: ".gz", 2: ".bz2"}.get(number, ""), content)
    report = project.run()
    assert project.rows("value") == Counter(
        [(word,) for word in ("one", "two", "three", "four", "five")]
    )
    assert [batch.files for batch in report.steps[0].batches] == [2, 2, 1]
    assert report.counts.quarantined == 1


def test_a_batch_holds_no_more_bytes_than_allowed(spark, tmp_path):
    project = Project(
        spark,
        tmp_path,
        {"format": "text", "max_bytes_per_batch": "2 KB", "schema": {"value": "string"}},
    )
    for number in range(4):
        project.land(f"{number}.txt", "x" * 900 + "\n")
    assert [batch.files for batch in project.run().steps[0].batches] == [2, 2]


# --- the probe and Spark ---

FOLDERS = [
    "",
    "a/",
    "b c/",
    "a/2026-01/",
    "ü/",
    "_k=1/",
    "_hidden/",
    ".hidden/",
    "100%/",
    "x._COPYING_/",
    "_metadata_x/",
    "d.json/",
]
NAMES = [
    "1.json",
    "2.json",
    "a b.json",
    "ü%20.json",
    ".h.json",
    "_h.json",
    "w.json.tmp",
    "c.json._COPYING_",
    "n.txt",
    "p+q=r.json",
    "#.json",
    "_x=1.json",
]
SOURCES = [
    {},
    {"pattern": "*.json"},
    {"pattern": "[!_]*.{json,txt}"},
    {"path": "/*"},
    {"path": "/{a,b c,.hidden}"},
    {"path": "/?"},
    {"path": "/a/../a//"},
    {"path": "/[!a]*", "pattern": "[1-9].json"},
]


def plant(generator: random.Random, project: Project, count: int) -> None:
    for _ in range(count):
        path = generator.choice(FOLDERS) + generator.choice(NAMES)
        if not (project.landing / path).exists():
            project.land(path, f"{path}\n")


@pytest.mark.parametrize("seed", range(len(SOURCES)))
def test_the_probe_and_spark_see_the_same_files(spark, tmp_path, seed):
    """Over random trees: what waits is exactly what a run then reads; after it nothing waits."""
    generator, entries = random.Random(seed), dict(SOURCES[seed])
    project = Project(spark, tmp_path, {"format": "text", "schema": {"value": "string"}})
    project.source = {
        **project.source,
        **entries,
        "path": f"{project.landing}{entries.get('path', '')}",
    }
    for count in (25, 6):
        plant(generator, project, count)
        pipeline = load_pipeline(project.write())
        known = project.rows("value") if project.reports else Counter()
        expected = Counter(
            (f.path.removeprefix(f"{project.landing}/"),)
            for f in list_files(pipeline.steps[0].source)
        )
        (backlog,) = measure_pipeline(pipeline, project.paths)
        assert backlog.files == len(expected - known)
        report = project.run()
        assert report.status in ("done", "nothing new")
        assert project.rows("value") == expected
        assert not measure_pipeline(pipeline, project.paths)[0].must_run


# --- folders that say something ---


def test_folders_give_columns_and_a_file_outside_of_them_is_malformed_with_its_text(
    spark, tmp_path
):
    source = {
        "format": "json",
        "schema": PAIR,
        "partition_columns": {"day": "date", "shop": "string", "n": "int"},
        "file_date": "day=%Y-%m-%d",
    }
    keyed = {"event_time": {"column": "at"}, "dedup": {"keys": ["a"], "within": "forever"}}
    project = Project(spark, tmp_path, source, {**keyed, "transform": "at.sql"})
    (tmp_path / "at.sql").write_text("SELECT *, CAST(day AS TIMESTAMP) AS at FROM source")
    row = '{"a": %d, "s": "x"}\n'
    rest = "shop=b/n=1/1.json"
    for number, folder in enumerate(
        [
            "day=2026-01-31/shop=%C3%BC 1%2F2+3/n=7/1.json",
            "day=2026-01-31/shop=50%/n=__HIVE_DEFAULT_PARTITION__/1.json",
            "x/day=2025-01-01/day=2026-02-01/shop=/n=-1/1.json",
            f"day=2026-13-01/{rest}",
            f"day=202601/{rest}",
            f"{rest}",
            "day=2026-01-31/shop=b/n=1.5/1.json",
            "day=2026-01-31/shop=b/m=n=1/n=.json",
        ]
    ):
        project.land(folder, row % number)
    report = project.run()
    assert (report.error, report.counts.read, report.counts.written) == (None, 8, 3)
    day = date(2026, 1, 31)
    assert project.rows("a", "day", "shop", "n") == Counter(
        [(0, day, "ü 1/2+3", 7), (1, day, "50%", None), (2, date(2026, 2, 1), "", -1)]
    )
    assert {json.loads(text)["a"]: why for text, why in details(project).items()} == {
        3: "the folder day=2026-13-01 is not date",
        4: "day: not within the years 1 to 9999",
        5: "the file lies in no folder day=...",
        6: "the folder n=1.5 is not int",
        7: "the file lies in no folder n=...",
    }
    again = project.run(window=FIRST_DAY)
    assert (again.error, again.counts.read, again.counts.duplicate) == (None, 4, 4)
    assert project.plan().files == 0


@pytest.mark.parametrize(("format_", "encode"), [("parquet", as_parquet), ("csv", None)])
def test_folders_give_columns_to_rows_of_every_format(spark, tmp_path, format_, encode):
    project = Project(
        spark,
        tmp_path,
        {"format": format_, "schema": PAIR, "partition_columns": {"k d": "int"}},
        {"transform": "named.sql", "sink": {"mode": "append"}},
    )
    (tmp_path / "named.sql").write_text("SELECT a, s, `k d` AS k FROM source")
    content = encode(a=long(1), s=["x"]) if encode else "s,a\nx,1\n"
    project.land("k d=5/1", content)
    project.land("k d=five/1", content)
    assert project.run().error is None
    assert project.rows("a", "s", "k") == Counter([(1, "x", 5)])
    lost = '{"a":1,"s":"x"}' if encode else "x,1"
    assert details(project) == {lost: "the folder k d=five is not int"}
