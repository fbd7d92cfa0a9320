"""What is proposed from a sample is what a pipeline accepts, and what was guessed is told."""

import bz2
import gzip
import json

import pyarrow as pa
import pytest
import yaml
import zstandard
from pyarrow import orc, parquet
from sluice.errors import SourceError, SpecError
from sluice.propose import format_schema, make_row, propose
from sluice.propose.filetypes import read_avro
from sluice.spec import FileSource


def land(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def infer_json(folder, *rows):
    return look(folder, "a.jsonl", "\n".join(json.dumps(row) for row in rows)).schema


def look(folder, name, text):
    return propose(land(folder, name, text))


def test_json_values_become_spark_types(tmp_path):
    row = {
        "id": 1,
        "name": "a",
        "price": 1.5,
        "paid": True,
        "at": "2026-01-01T10:00:00Z",
        "day": "2026-01-01",
        "nothing": None,
        "big": 2**70,
    }
    assert infer_json(tmp_path, row) == {
        "id": "bigint",
        "name": "string",
        "price": "double",
        "paid": "boolean",
        "at": "timestamp",
        "day": "date",
        "nothing": "string",
        "big": "string",
    }


def test_nested_values_become_structs_and_arrays(tmp_path):
    found = infer_json(
        tmp_path,
        {"c": {"id": "x", "n": 1}, "items": [{"sku": "a"}, {"price": 2}], "tags": [], "empty": {}},
    )
    assert found == {
        "c": "struct<id: string, n: bigint>",
        "items": "array<struct<sku: string, price: bigint>>",
        "tags": "array<string>",
        "empty": "map<string, string>",
    }


@pytest.mark.parametrize(
    ("first", "second", "type_"),
    [
        (1, 2.5, "double"),
        (1, None, "bigint"),
        (None, True, "boolean"),
        (1, "a", "string"),
        ("2026-01-01", "2026-01-01T00:00:00Z", "timestamp"),
        ("2026-01-01", "soon", "string"),
        ({"a": 1}, [1], "string"),
        (True, 1, "string"),
    ],
)
def test_rows_that_differ_get_the_narrowest_type_that_holds_both(tmp_path, first, second, type_):
    assert infer_json(tmp_path, {"v": first}, {"v": second}) == {"v": type_}


def test_a_line_that_is_not_json_is_left_out(tmp_path):
    path = land(tmp_path, "a.jsonl", '{"id": 1}\n{broken\n\n{"id": 2, "b": "x"}\n')
    assert propose(path).schema == {"id": "bigint", "b": "string"}


@pytest.mark.parametrize("text", ['[\n {"id": 1},\n {"id": 2}\n]', '{\n "id": 1\n}', '[{"id": 1}]'])
def test_json_over_several_lines_is_read(tmp_path, text):
    assert look(tmp_path, "a.json", text).schema == {"id": "bigint"}


def test_csv_texts_become_spark_types_and_codes_stay_text(tmp_path):
    text = (
        "id,price,at,day,flag,code,note\n"
        "1,2.50,2026-01-01 10:00:00,2026-01-01,true,00123,\n"
        "2,3,2026-01-02 10:00:00,2026-01-02,false,00124,hello\n"
    )
    assert look(tmp_path, "a.csv", text).schema == {
        "id": "bigint",
        "price": "double",
        "at": "timestamp",
        "day": "date",
        "flag": "boolean",
        "code": "string",
        "note": "string",
    }


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".zst", zstandard.compress),
        ("", lambda data: data),
    ],
)
def test_packed_files_are_unpacked_by_their_name(tmp_path, suffix, pack):
    packed = pack(b'\xef\xbb\xbf{"id": 1}\n')
    assert look(tmp_path, f"a.jsonl{suffix}", packed).schema == {"id": "bigint"}


def test_columns_of_all_files_are_joined(tmp_path):
    land(tmp_path, "a.jsonl", '{"id": 1}\n')
    land(tmp_path, "b.jsonl", '{"id": 2.5, "x": "y"}\n')
    assert propose(tmp_path).schema == {"id": "double", "x": "string"}


TABLE = pa.table(
    {
        "id": pa.array([1], pa.int64()),
        "small": pa.array([1], pa.int32()),
        "price": pa.array([1.5]),
        "at": pa.array([0], pa.timestamp("us", tz="UTC")),
        "local": pa.array([0], pa.timestamp("us")),
        "day": pa.array([0], pa.date32()),
        "tags": pa.array([["a"]]),
        "who": pa.array([{"name": "x"}]),
    }
)
TYPES = {
    "id": "bigint",
    "small": "int",
    "price": "double",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "day": "date",
    "tags": "array<string>",
    "who": "struct<name: string>",
}


def test_parquet_says_its_own_types(tmp_path):
    parquet.write_table(TABLE, tmp_path / "a.parquet")
    assert propose(tmp_path / "a.parquet").schema == TYPES


def test_orc_says_its_own_types(tmp_path):
    orc.write_table(TABLE, tmp_path / "a.orc")
    assert propose(tmp_path / "a.orc").schema == TYPES


def avro_file(schema: dict) -> bytes:
    """The header of an Avro container file: magic, one block of metadata, an end mark."""

    def text(data: bytes) -> bytes:
        size, out = len(data) << 1, b""
        while size > 0x7F:
            out, size = out + bytes([size & 0x7F | 0x80]), size >> 7
        return out + bytes([size]) + data

    return (
        b"Obj\x01"
        + b"\x04"
        + text(b"avro.codec")
        + text(b"null")
        + text(b"avro.schema")
        + text(json.dumps(schema).encode())
        + b"\x00"
        + b"s" * 16
    )


def test_avro_says_its_own_types(tmp_path):
    fields = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {
            "name": "who",
            "type": {"type": "record", "name": "w", "fields": [{"name": "name", "type": "string"}]},
        },
        {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["a"]}},
    ]
    path = land(tmp_path, "a.avro", avro_file({"type": "record", "name": "r", "fields": fields}))
    assert read_avro(path) == {
        "id": "bigint",
        "at": "timestamp",
        "price": "decimal(10,2)",
        "tags": "array<string>",
        "who": "struct<name: string>",
        "kind": "string",
    }


@pytest.mark.parametrize("format", ["parquet", "orc", "avro"])
def test_a_file_of_another_format_is_named(tmp_path, format):
    with pytest.raises(SourceError, match=f"a.bin: cannot be read as {format}"):
        propose(land(tmp_path, "a.bin", "plain text, not a file of columns"), format)


def test_an_empty_sample_says_so(tmp_path):
    with pytest.raises(SourceError, match="no rows to learn from"):
        look(tmp_path, "a.jsonl", "\n\n")


def test_the_proposal_is_yaml_that_a_source_accepts(tmp_path):
    columns = infer_json(
        tmp_path,
        {
            "id": 1,
            "no": True,
            "two words": "a",
            "c": {"x-y": 1, "z": [1.5]},
            "@t": "2026-01-01T00:00:00Z",
        },
    )
    read = yaml.safe_load(format_schema(columns))["schema"]
    assert read == columns
    assert (
        FileSource.model_validate({"path": "x", "format": "json", "schema": read}).columns
        == columns
    )


GERMAN = (
    "Nr;Name;Betrag;Datum;Menge\r\n"
    '1;"Müller; Söhne";1.234,50;13.02.2026 10:00;3\r\n'
    "2;Schulz;-3,20;02.02.2026 11:30;1\r\n"
    '3;"Weiß ""Bau""";0,10;03.02.2026 08:15;2\r\n'
)


def test_separator_decimals_dates_and_encoding_of_a_german_csv_are_found(tmp_path):
    found = look(tmp_path, "a.csv", GERMAN.encode("windows-1252"))
    assert found.layout.encoding == "windows-1252"
    assert found.layout.options == {
        "sep": ";",
        "locale": "de-DE",
        "timestampFormat": "dd.MM.yyyy HH:mm",
    }
    assert found.schema == {
        "Nr": "bigint",
        "Name": "string",
        "Betrag": "decimal(20,2)",
        "Datum": "timestamp",
        "Menge": "bigint",
    }
    assert found.time.columns == ("Datum",)
    assert found.keys.columns == ("Nr",)
    assert any("windows-1252 is a guess" in note for note in found.notes)
    assert any("Datum carries no time zone: it is read as UTC" in note for note in found.notes)
    assert make_row(found)["Datum"] == "01.01.2026 00:00"


def test_every_cell_of_a_sniffed_csv_is_where_it_belongs(tmp_path):
    """The separator stands within quotes, a quote within quotes, and a line break."""
    text = 'id|note\n1|"a|b ""c"""\n2|"d\ne"\n3|f\n'
    found = look(tmp_path, "a.csv", text)
    assert found.layout.options == {"sep": "|"}
    assert found.layout.multi_line
    assert found.schema == {"id": "bigint", "note": "string"}
    assert any("line breaks" in note for note in found.notes)


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
def test_no_separator_makes_one_column_of_several(tmp_path, separator):
    rows = [["a", "b", "c"], ["1", "x y", "2026-01-01"], ["2", "z", "2026-01-02"]]
    found = look(tmp_path, "a.csv", "".join(separator.join(row) + "\n" for row in rows))
    assert list(found.schema) == ["a", "b", "c"]


def test_a_csv_of_one_column_says_that_no_separator_was_found(tmp_path):
    found = look(tmp_path, "a.csv", "word\nhello\nworld\n")
    assert found.schema == {"word": "string"}
    assert any("no separator was found" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("1,a,2026-01-01\n2,b,2026-01-02\n", False),
        ("red,1\nblue,2\nred,3\n", False),
        ("colour,count\nred,1\nblue,2\n", True),
        ("first name,last name\nAnn,Lee\nBob,Ray\n", True),
    ],
)
def test_a_first_line_of_values_is_no_header(tmp_path, text, header):
    found = look(tmp_path, "a.csv", text)
    assert found.layout.header is header
    assert ("column_1" in found.schema) is not header


@pytest.mark.parametrize(
    ("days", "pattern", "guessed"),
    [
        (("13/02/2026", "01/03/2026"), "dd/MM/yyyy", False),
        (("02/13/2026", "03/01/2026"), "MM/dd/yyyy", False),
        (("02/03/2026", "03/01/2026"), "dd/MM/yyyy", True),
        (("3.1.2026", "13.1.2026"), "d.M.yyyy", False),
        (("13-Feb-2026", "01-Mar-2026"), "dd-MMM-yyyy", False),
    ],
)
def test_days_and_months_are_told_apart_or_it_is_said_that_they_cannot_be(
    tmp_path, days, pattern, guessed
):
    found = look(tmp_path, "a.csv", "id;day\n" + "".join(f"{i};{d}\n" for i, d in enumerate(days)))
    assert found.schema["day"] == "date"
    assert found.layout.options["dateFormat"] == pattern
    assert any("days may be months" in note for note in found.notes) is guessed


def test_a_column_of_another_time_format_stays_text_and_is_told(tmp_path):
    text = "id,made,sent\n1,2026-01-31 10:00:00,31.01.2026 11:00\n"
    found = look(tmp_path, "a.csv", text)
    assert (found.schema["made"], found.schema["sent"]) == ("timestamp", "string")
    assert any("try_to_timestamp(sent, 'dd.MM.yyyy HH:mm')" in note for note in found.notes)


@pytest.mark.parametrize(
    ("values", "separator", "type_", "locale"),
    [
        (["1,234.50", "7"], ";", "decimal(20,2)", None),
        (["1.234,5", "7"], ";", "decimal(19,1)", "de-DE"),
        (["1,234", "5,678"], ";", "decimal(21,3)", "de-DE"),
        (["1,234", "5,678"], "\t", "decimal(18,0)", None),
        (["1.5", "2"], ";", "double", None),
        (["1,2,3", "4"], ";", "string", None),
    ],
)
def test_commas_in_numbers_are_decimals_or_thousands(tmp_path, values, separator, type_, locale):
    rows = "".join(f"{i}{separator}{value}\n" for i, value in enumerate(values))
    found = look(tmp_path, "a.csv", f"id{separator}amount\n{rows}")
    assert found.schema["amount"] == type_
    assert found.layout.options.get("locale") == locale


def test_a_name_that_delta_takes_not_is_another_in_the_table_and_that_is_told(tmp_path):
    found = look(tmp_path, "a.csv", "Order No,Order_No,placed at\n1,2,2026-01-01 10:00:00\n")
    assert found.names == {
        "Order No": "Order_No",
        "Order_No": "Order_No_2",
        "placed at": "placed_at",
    }
    assert found.time.columns == ("placed_at",)
    assert found.select["placed_at"] == "`placed at`"
    assert any("'placed at' is placed_at" in note for note in found.notes)


def test_sibling_keys_that_are_data_make_a_map(tmp_path):
    found = infer_json(
        tmp_path,
        {
            "by_day": {"2026-01-01": 1, "2026-01-02": 2.5},
            "by_user": {"10": {"n": 1}, "11": {"m": 2}},
        },
        {"names": {"a": 1, "b": 2}},
    )
    assert found == {
        "by_day": "map<string, double>",
        "by_user": "map<string, struct<n: bigint, m: bigint>>",
        "names": "struct<a: bigint, b: bigint>",
    }


@pytest.mark.parametrize(
    ("column", "value", "sql"),
    [
        ("event_time", 1_767_225_600_000, "timestamp_millis(`event_time`)"),
        ("createdAt", 1_767_225_600, "timestamp_seconds(`createdAt`)"),
        ("account", 1_767_225_600_000, None),
    ],
)
def test_epochs_under_the_name_of_a_time_become_times(tmp_path, column, value, sql):
    rows = "".join(json.dumps({"id": i, column: value + i}) + "\n" for i in range(3))
    found = look(tmp_path, "a.jsonl", rows)
    assert found.select[column] == (sql or f"`{column}`")
    assert (found.time.columns if found.time else None) == ((column,) if sql else None)


def orders(*rows):
    return "".join(
        json.dumps({"order_id": i, "at": "2026-01-01T00:00:00Z", "amount": a}) + "\n"
        for i, a in rows
    )


def test_a_key_is_what_no_two_rows_share_that_differ(tmp_path):
    found = look(tmp_path, "a.jsonl", orders(("x", 1), ("y", 2), ("x", 1), ("z", 1)))
    assert found.keys.columns == ("order_id",)
    assert "1 that repeat another word for word" in found.keys.reason


def test_a_column_named_like_a_key_is_none_where_it_would_lose_a_row(tmp_path):
    found = look(tmp_path, "a.jsonl", orders(("x", 1), ("y", 2), ("x", 3), ("y", 2)))
    assert found.keys is None
    assert any("1 values of order_id are in rows that differ" in note for note in found.notes)


def test_two_columns_are_a_key_where_one_is_not(tmp_path):
    at = "2026-01-01T00:00:00Z"
    rows = [{"shop": s, "position": n, "at": at} for s in range(10) for n in range(10)]
    found = look(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert set(found.keys.columns) == {"shop", "position"}


def test_in_a_small_sample_only_a_column_named_like_a_key_is_one(tmp_path):
    rows = [{"word": word, "at": "2026-01-01T00:00:00Z"} for word in "abc"]
    found = look(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert found.keys is None, "three words that differ may be alike tomorrow"


def test_the_time_a_row_happened_is_preferred_to_that_of_its_last_change(tmp_path):
    row = {"id": 1, "updated_at": "2026-01-02T00:00:00Z", "ordered_at": "2026-01-01T00:00:00Z"}
    found = look(tmp_path, "a.jsonl", json.dumps(row) + "\n")
    assert found.time.columns == ("ordered_at",)
    assert "updated_at would do as well" in found.time.reason


def test_rules_say_what_the_sample_does(tmp_path):
    rows = [
        {"id": i, "status": ("new", "paid")[i % 2], "amount": i, "email": "a@b.c"}
        for i in range(60)
    ]
    found = look(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert [(rule.type, rule.kwargs.get("column")) for rule in found.rules] == [
        ("expect_column_values_to_not_be_null", "id"),
        ("expect_column_values_to_be_between", "amount"),
        ("expect_column_values_to_be_in_set", "status"),
    ]
    assert found.rules[2].kwargs["value_set"] == ["new", "paid"]
    assert all(rule.reason for rule in found.rules)
    assert found.pii == ["email"]


def test_time_and_level_of_a_log_are_found_in_its_lines(tmp_path):
    lines = [f"2026-01-{day:02} 10:00:00,123 INFO [main] a: b" for day in range(1, 20)]
    lines.append("    at a.b.C(C.java:1)")
    found = look(tmp_path, "a.log", "\n".join(lines) + "\n")
    assert found.layout.format == "text"
    assert '"yyyy-MM-dd HH:mm:ss,SSS"' in found.select["logged_at"]
    assert "level" in found.select
    assert found.rules[0].kwargs == {"column": "logged_at", "mostly": 0.95}
    assert found.time is found.keys is None, "two lines that are alike are two lines"


def test_files_of_another_kind_and_hidden_ones_are_left_out_and_the_first_are_named(tmp_path):
    for name, text in (
        ("2026-01-01.csv", "id\n1\n"),
        ("2026-01-02.csv", "id\n2\n"),
        ("readme.txt", "hello"),
        (".2026-01-03.csv", "other\n1\n"),
        ("_SUCCESS", ""),
    ):
        land(tmp_path, name, text)
    found = propose(tmp_path)
    assert (found.pattern, found.file_date) == ("*.csv*", "%Y-%m-%d")
    assert found.schema == {"id": "bigint"}
    assert any("1 files of other kinds are left out (first: readme.txt)" in n for n in found.notes)


def test_a_folder_of_many_files_is_looked_at_from_end_to_end(tmp_path):
    for number in range(250):
        land(tmp_path, f"{number:03}.jsonl", json.dumps({"id": number, f"c{number}": 1}) + "\n")
    found = propose(tmp_path)
    assert {"c0", "c249"} <= set(found.schema)
    assert any("100 of 250 files were looked at" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "says"), [("nothing", "no such file"), ("a.bin", "does not say its format")]
)
def test_what_cannot_be_looked_at_is_named(tmp_path, name, says):
    land(tmp_path, "a.bin", "x")
    with pytest.raises(SpecError, match=says):
        propose(tmp_path / name)
