"""A schema proposed from a sample is one that a pipeline accepts."""

import bz2
import gzip
import json

import pyarrow as pa
import pytest
import yaml
import zstandard
from pyarrow import orc, parquet
from sluice.cli.filetypes import read_avro
from sluice.cli.inference import format_schema, infer_columns, sample_value
from sluice.errors import SourceError
from sluice.spec import FileSource


def land(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def infer_json(folder, *rows):
    return infer_columns(
        [land(folder, "a.jsonl", "\n".join(json.dumps(row) for row in rows))], "json"
    )


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
    assert infer_columns([path], "json") == {"id": "bigint", "b": "string"}


@pytest.mark.parametrize("text", ['[\n {"id": 1},\n {"id": 2}\n]', '{\n "id": 1\n}', '[{"id": 1}]'])
def test_json_over_several_lines_is_read(tmp_path, text):
    assert infer_columns([land(tmp_path, "a.json", text)], "json") == {"id": "bigint"}


def test_csv_texts_become_spark_types_and_codes_stay_text(tmp_path):
    text = (
        "id,price,at,day,flag,code,note\n"
        "1,2.50,2026-01-01 10:00:00,2026-01-01,true,00123,\n"
        "2,3,2026-01-02 10:00:00,2026-01-02,false,00124,hello\n"
    )
    assert infer_columns([land(tmp_path, "a.csv", text)], "csv") == {
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
    assert infer_columns(
        [land(tmp_path, f"a.jsonl{suffix}", pack(b'\xef\xbb\xbf{"id": 1}\n'))], "json"
    ) == {"id": "bigint"}


def test_columns_of_all_files_are_joined(tmp_path):
    files = [
        land(tmp_path, "a.jsonl", '{"id": 1}\n'),
        land(tmp_path, "b.jsonl", '{"id": 2.5, "x": "y"}\n'),
    ]
    assert infer_columns(files, "json") == {"id": "double", "x": "string"}


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
    assert infer_columns([tmp_path / "a.parquet"], "parquet") == TYPES


def test_orc_says_its_own_types(tmp_path):
    orc.write_table(TABLE, tmp_path / "a.orc")
    assert infer_columns([tmp_path / "a.orc"], "orc") == TYPES


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
        infer_columns([land(tmp_path, "a.bin", "plain text, not a file of columns")], format)


def test_an_empty_sample_says_so(tmp_path):
    with pytest.raises(SourceError, match="no rows to learn from"):
        infer_columns([land(tmp_path, "a.jsonl", "\n\n")], "json")


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


@pytest.mark.parametrize(
    "type_",
    [
        "string",
        "bigint",
        "double",
        "boolean",
        "timestamp",
        "date",
        "array<string>",
        "struct<a: int>",
        "map<string, string>",
    ],
)
def test_every_type_has_a_sample_value_that_json_can_write(type_):
    assert json.dumps(sample_value(type_))
