"""A JSON record is parsed a second time only where the first parse leaves a doubt.

What it says must not depend on that.
"""

import pytest
from pyspark.sql import functions as F
from sluice.sources.parse import json_records as parse_json
from sluice.spec import FileSource

from tests.bad_input import json_kinds

FLAT = {
    "id": "int",
    "name": "string",
    "at": "timestamp",
    "day": "date",
    "rate": "double",
    "price": "decimal(5,2)",
    "flag": "boolean",
    "big": "bigint",
}
SCHEMAS = {
    "flat": FLAT,
    "nested": FLAT
    | {"shop": "struct<city:string,zip:int>", "tags": "array<string>", "parts": "map<string,int>"},
}
PLAIN = [
    '{"id":1,"name":"a"}',
    '{"id": 1, "at": "2026-01-01T00:00:00Z", "rate": 1.5}',
    '{"name":null,"id":2}',
    '{"big":1}\n',
    '{"name":"a}"}',
    '{"name":"]"}',
    "{}",
]
DOUBTFUL = [
    '{"name":"a]"} 1]',
    '{"id":1}]',
    '{"id":1}] x',
    '{"id":1}],[{"id":2}',
    '{"id":1}, {}]',
    '{"id":1},0]',
    '{"id":1},{"id":2},{}]',
    '{"name":"a}"}}',
    '{"name":{"at":"x"},"at":12345678901234}',
    '{"name":["at",{"at":"x"}],"at":-99999999999999}',
    '{"at":1234567890123}',
    '{"day":1234567890123}',
    '{"at":1234567890}',
    '{"name":1e400}',
    '{"name":[1e400]}',
    '{"name":{"a":-1e999}}',
    '{"name":"Infinity"}',
    '{"name":"\\"Infinity\\""}',
    '{"x":1e400}',
    '{"rate":1e400,"id":"x"}',
    '{"id":null,"id":null}',
    '{"id":null,"id":1}',
    '{"id":1,"x":null}',
    '{"id":1,"ID":2}',
    '{"n\\u0061me":"a","name":"b"}',
    '{"name":"\\ud83d"}',
    '{"name":"\\uD83D\\uDE00"}',
]
LINES = [
    line
    for group in (
        json_kinds.ENCODINGS,
        json_kinds.SHAPES,
        json_kinds.DRIFT,
        json_kinds.NUMBERS,
        json_kinds.TIMES,
    )
    for kind in group
    for line in kind.lines
]


def parse(spark, schema: dict[str, str], lines: list[str]) -> list:
    """Each line's number, whether it was in doubt, and all that is said of it.

    As text: Python has no dates beyond the year 9999.
    """
    source = FileSource.model_validate({"path": "in", "format": "json", "schema": schema})
    frame = spark.createDataFrame(list(enumerate(lines)), "number int, _raw string")
    parsed = parse_json.parse_json(frame, source)
    said = F.to_json(
        F.struct(
            *[
                F.col(f"_parsed.{name}").cast("string").alias(name)
                for name in (*schema, "_defect", "_rescued")
            ]
        )
    )
    return parsed.select("number", "_doubtful", said).orderBy("number").collect()


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_record_says_the_same_whether_it_is_parsed_once_or_twice(spark, monkeypatch, schema):
    lines = [*PLAIN, *DOUBTFUL, *LINES]
    chosen = parse(spark, schema, lines)
    monkeypatch.setattr(parse_json, "_is_plain", lambda source: F.lit(False))
    twice = parse(spark, schema, lines)
    assert [(line, one[2]) for line, one in zip(lines, chosen, strict=True)] == [
        (line, two[2]) for line, two in zip(lines, twice, strict=True)
    ]
    assert all(two[1] for two in twice)
    assert [line for line, one in zip(PLAIN, chosen, strict=False) if one[1]] == []


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_nothing_that_stands_behind_a_record_is_passed_over(spark, schema):
    lines = [
        '{"id":1}] x',
        '{"id":1}]',
        '{"id":1}],[{"id":2}',
        '{"id":1}, {}]',
        '{"id":1},0]',
        '{"id":1}{"id":2}',
        '{"id":1} x',
        '{"name":"]"}]',
    ]
    assert {"more than one JSON value" in said for _, _, said in parse(spark, schema, lines)} == {
        True
    }
