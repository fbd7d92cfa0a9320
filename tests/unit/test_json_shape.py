"""The pattern of a record as a machine writes it: Python reads it as Java does, but for its end."""

import json
import re

import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    TimestampType,
    VariantType,
)
from sluice.sources.parse.json_shape import is_written_in_order, pattern

KINDS: dict[str, DataType] = {
    "id": LongType(),
    "na-me": StringType(),
    "at": TimestampType(),
    "rate": DoubleType(),
    "open": BooleanType(),
}
RECORD = {"id": 1, "na-me": "ä}, b", "at": "2026-01-01T00:00:00Z", "rate": -1.5e7, "open": True}


def is_in_order(record: str, blank: str) -> bool:
    return re.match(pattern(KINDS, blank).replace(r"\z", r"\Z"), record) is not None


def write(fields: dict[str, object], blank: str) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=("," + blank, ":" + blank))


@pytest.mark.parametrize("blank", ["", " "])
@pytest.mark.parametrize(
    "fields",
    [
        RECORD,
        {"id": 1},
        {"id": None, "na-me": None, "open": None},
        {"id": 12345678901234567890, "rate": 0},
        {"id": 1, "open": False},
    ],
)
def test_declared_fields_in_their_order_are_told(fields, blank):
    assert is_in_order(write(fields, blank), blank)
    assert not is_in_order(write(fields, blank), " " if not blank and len(fields) > 1 else "\t")


@pytest.mark.parametrize(
    "record",
    [
        "{}",
        '{"na-me":"a"}',
        '{"na-me":"a","id":1}',
        '{"id":1,"id":1}',
        '{"id":1,"x":1}',
        '{"id":1,"na-me":"a","na-me":"b"}',
        '{"id":1,"na.me":"a"}',
        '{"id":1,"naXme":"a"}',
        '{"id":1} x',
        '{"id":1}\n',
        '{"id":1}}',
        ' {"id":1}',
        '{"id":1 }',
        '{"id":"1"}',
        '{"id":1,"na-me":"a\\u0062"}',
        '{"id":1,"na-me":"a\\""}',
        '{"id":1,"na-me":2}',
        '{"id":1,"na-me":{"id":1}}',
        '{"id":1,"na-me":["a"]}',
        '{"id":1,"at":12345678901234}',
        '{"id":1,"rate":1}{"id":2}',
        '{"id":1/**/}',
        "{'id':1}",
        "{id:1}",
    ],
)
def test_nothing_else_is(record):
    assert not is_in_order(record, "")


def test_a_schema_with_a_value_of_unknown_writing_has_no_such_record():
    for kind in (ArrayType(StringType()), StructType(), VariantType()):
        assert is_written_in_order({**KINDS, "more": kind}) is None


def test_neither_has_one_of_so_many_fields_that_java_would_run_out_of_stack():
    assert is_written_in_order({f"c{number}": LongType() for number in range(101)}) is None
    assert is_written_in_order({}) is None
