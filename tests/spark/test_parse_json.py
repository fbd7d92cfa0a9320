"""A JSON record is parsed a second time only where the first parse leaves a doubt.

What it says must not depend on that.
"""

import json
import random

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from sluice.sources.parse import json_records as parse_json
from sluice.sources.parse.json_shape import is_written_in_order
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
    | {
        "shop": "struct<city:string,zip:int>",
        "tags": "array<string>",
        "parts": "map<string,int>",
        "stops": "array<struct<city:string,zip:int>>",
        "rates": "array<double>",
    },
    "deep": FLAT
    | {
        "shop": "struct<city:string,geo:struct<lat:double,names:array<string>>>",
        "tags": "array<array<string>>",
        "parts": "map<string,struct<zip:int,rates:array<float>>>",
        "stops": "array<struct<city:string,zip:decimal(2,2),open:boolean,rates:map<string,int>>>",
        "rates": "map<string,double>",
    },
    "timed": FLAT | {"shop": "struct<city:string,at:timestamp>", "stops": "array<date>"},
    "rare": FLAT
    | {
        "shop": "struct<city:binary,zip:timestamp_ntz,name:interval day>",
        "stops": "array<struct<city:binary,zip:timestamp_ntz>>",
        "parts": "map<string,struct<zip:variant,city:interval day>>",
        "rates": "array<struct<zip:boolean,city:float>>",
    },
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
    '{"id":1,"x" :2}',
    '{"id":1,"x"\t:2}',
    '{"id":1,"x\\"name":null}',
    '{"name":"a\\":b"}',
    '{"name":"\\"x\\":null","id":null}',
    '{"id":1}}',
    '{"shop":{"city":"a"}}}',
    '{"shop":{"city":"a"}} x }',
    '{"shop":{"city":"a","x":1}}',
    '{"shop":{"city":"a","city":"b"}}',
    '{"shop":{"name":null}}',
    '{"x":null,"shop":{"name":null}}',
    '{"parts":{"a":1,"a":2}}',
    '{"parts":{"a":null}}',
    '{"parts":null}',
    '{"stops":[{"city":"a","zip":1},null,{"zip":null}]}',
    '{"stops":[null]}}',
    '{"stops":[{"x":1}]}',
    '{"stops":[{"zip":1}],"x":1}',
    '{"tags":["1e400",1e400]}',
    '{"rates":[1e400]}',
    '{"rates":[null,-1e400]}',
    '{"rates":{"a":1e400}}',
    '{"shop":{"city":1e400}}',
    '{"shop":{"city":[1e400]}}',
    '{"shop":{"city":"a","at":12345678901234}}',
    '{"shop":{"city":"a","geo":{"lat":-1e400}}}',
    '{"shop":{"geo":{"names":["a",1e400]}}}',
    '{"tags":[["a"],[1e400]]}',
    '{"tags":[["a"],null]}',
    '{"parts":{"a":{"zip":1,"rates":[1e39]}}}',
    '{"parts":{"a":{"rates":[1.5]},"b":null}}',
    '{"stops":[{"city":"\\u0000","zip":0.1}]}',
    '{"stops":[{"city":1e400,"zip":null}]}',
    '{"stops":[{"rates":{"a":1e400}}]}',
    '{"stops":[12345678901234]}',
    '{"shop":{"at":1767225600000},"stops":[253402300800]}',
    '{"shop":{"at":1767225600},"stops":["2026-01-01",null]}',
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


def parse(spark, schema: dict[str, str], lines: list[str], **options: str) -> list:
    """Each line's number, whether it was in doubt, and all that is said of it. Args: options: of
    the reader.

    As text: Python has no dates beyond the year 9999.
    """
    source = FileSource.model_validate(
        {"path": "in", "format": "json", "schema": schema, "options": options}
    )
    frame = spark.createDataFrame(list(enumerate(lines)), "number int, _raw string")
    read = parse_json.parse_json(frame, source)
    found = zip(
        (*schema, "_defect", "_rescued"), (*read.fields, read.defect, read.rescued), strict=True
    )
    said = F.to_json(F.struct(*[value.cast("string").alias(name) for name, value in found]))
    doubtful = F.col("_told").isNotNull()
    return read.records.select("number", doubtful, said).orderBy("number").collect()


VALUES = [
    *(None, 0, 7, -1.5, 1e300, 12345678901234, True, "", "a", "NaN", "Infinity", "2026-01-01"),
    *("2026-01-01T00:00:00Z", '"a":1', '"name":null', "}", "{", " :", "':", "\\", "ü"),
    *({}, {"city": "a", "zip": 1}, {"zip": None}, {"city": 1, "x": {}}, {"a": 1, "b": 2}),
    *({"a": {"zip": 1, "rates": [1.5]}}, {"city": "a", "geo": {"lat": 1.5, "names": ["b"]}}),
    *([["a"], ["b", "c"]], [{"city": "a", "zip": 0.5, "open": True, "rates": {"b": 1.5}}]),
    *([], ["a"], [1.5, 2], [{"city": "a", "zip": 1}, {"zip": 2}], [None], [{"x": {"zip": 1}}]),
]


def draw_record(draw: random.Random) -> str:
    """One object in one of the ways to write it, sometimes with a name twice, a name that nobody
    declared, or a sign too many somewhere."""
    names = draw.choices([*SCHEMAS["nested"], "x", "ID", 'na"me'], k=draw.randint(0, 6))
    colon, comma = draw.choice([(":", ","), (": ", ", "), (" : ", ",")])
    fields = [json.dumps(n) + colon + draw_value(draw, n) for n in names]
    record = "{" + comma.join(fields) + "}"
    if draw.random() < 0.15:
        place = draw.randint(1, len(record))
        record = record[:place] + draw.choice('{}[]":, 1x') + record[place:]
    return record


def draw_value(draw: random.Random, name: str) -> str:
    """Often one that fits the column, now and then any other."""
    kind = SCHEMAS["nested"].get(name, "string")
    fits = [v for v in VALUES if fits_kind(v, kind)]
    ascii_only = draw.random() < 0.5
    return json.dumps(draw.choice(fits if draw.random() < 0.8 else VALUES), ensure_ascii=ascii_only)


def fits_kind(value, kind: str) -> bool:
    """True for a value that a column of a kind may well have."""
    classes = {"array": list, "map": dict, "struct": dict, "string": str, "boolean": bool}
    wanted = next((c for k, c in classes.items() if kind.startswith(k)), None)
    if wanted is not None:
        return value is None or isinstance(value, wanted)
    if kind in ("timestamp", "date"):
        return value is None or (isinstance(value, str) and value.startswith("2026"))
    return value is None or isinstance(value, int | float)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_any_record_says_the_same_whether_it_is_parsed_once_or_twice(spark, monkeypatch, schema):
    draw = random.Random(20261123)
    lines = [draw_record(draw) for _ in range(4000)]
    chosen = parse(spark, schema, lines)
    monkeypatch.setattr(parse_json, "is_plain", lambda source, kinds: F.lit(False))
    twice = parse(spark, schema, lines)
    assert [(line, one[2]) for line, one in zip(lines, chosen, strict=True)] == [
        (line, two[2]) for line, two in zip(lines, twice, strict=True)
    ]
    plain = sum(not one[1] for one in chosen)
    assert 400 < plain < 3600


def draw_in_order(draw: random.Random) -> str:
    """A flat record as a machine writes it; often with one sign too many, too few or another, a
    field twice, or one that nobody declared."""
    names = [name for name in FLAT if name == "id" or draw.random() < 0.8]
    if draw.random() < 0.1:
        names.insert(draw.randint(0, len(names)), draw.choice([*FLAT, "x"]))
    colon, comma = draw.choice([(":", ","), (": ", ", ")])
    fields = [f"{json.dumps(name)}{colon}{draw_flat(draw, name)}" for name in names]
    record = "{" + comma.join(fields) + "}"
    if draw.random() < 0.4:
        place, more = draw.randint(0, len(record)), draw.choice(["", "", *'{}[]":,\\ 1x\n'])
        record = record[:place] + more + record[place + draw.randint(0, 1) :]
    return record


def draw_flat(draw: random.Random, name: str) -> str:
    texts = ["a", "", "ü", "Infinity", '"', "\\", "}", '", "x": "', "2026-01-01T00:00:00Z", None]
    numbers = [None, 0, -7, 1.5, 1e300, 12345678901234, True]
    often = texts if FLAT.get(name, "string") in ("string", "timestamp", "date") else numbers
    if FLAT.get(name) in ("timestamp", "date") and draw.random() < 0.7:
        often = ["2026-01-01", "2026-01-01T00:00:00Z", None]
    value = draw.choice(often if draw.random() < 0.9 else [*texts, *numbers])
    if isinstance(value, float) and draw.random() < 0.1:
        return draw.choice(["1e400", "NaN", "-1e999", "01"])
    return json.dumps(value, ensure_ascii=draw.random() < 0.5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "allowComments": "true",
            "allowUnquotedFieldNames": "true",
            "allowNumericLeadingZeros": "true",
            "allowBackslashEscapingAnyCharacter": "true",
        },
    ],
    ids=["strict", "allowing"],
)
def test_a_record_written_in_order_says_the_same_whether_it_is_parsed_once_or_twice(
    spark, monkeypatch, options
):
    draw = random.Random(20261128)
    lines = [draw_in_order(draw) for _ in range(6000)]
    lines += ['{"id":1,"rate":1e400}', '{"id":1,"name":"\\ud83d"}', '{"id":1,"at":12345678901234}']
    chosen = parse(spark, FLAT, lines, **options)
    flat = StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in FLAT.items()))
    frame = spark.createDataFrame(list(enumerate(lines)), "number int, _raw string")
    look = is_written_in_order({field.name: field.dataType for field in flat.fields})
    looked = frame.select("number", look).orderBy("number").collect()
    in_order = [line for line, look in zip(lines, looked, strict=True) if look[1]]
    monkeypatch.setattr(parse_json, "is_plain", lambda source, kinds: F.lit(False))
    twice = parse(spark, FLAT, lines, **options)
    assert [(line, one[2]) for line, one in zip(lines, chosen, strict=True)] == [
        (line, two[2]) for line, two in zip(lines, twice, strict=True)
    ]
    assert 1500 < len(in_order) < 4500


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_record_says_the_same_whether_it_is_parsed_once_or_twice(spark, monkeypatch, schema):
    lines = [*PLAIN, *DOUBTFUL, *LINES]
    chosen = parse(spark, schema, lines)
    monkeypatch.setattr(parse_json, "is_plain", lambda source, kinds: F.lit(False))
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


def test_a_record_of_a_hundred_fields_is_told_by_the_order_it_is_written_in(spark):
    """Java goes through as many parts of an expression on the stack of a task."""
    fields = {f"c{number}": "string" for number in range(100)}
    flat = StructType.fromDDL(", ".join(f"{name} {kind}" for name, kind in fields.items()))
    look = is_written_in_order({field.name: field.dataType for field in flat.fields})
    lines = [json.dumps(dict.fromkeys(fields, "x" * size)) for size in (0, 500, 700)]
    frame = spark.createDataFrame([(line,) for line in lines], "_raw string").repartition(1)
    told = {row[0]: row[1] for row in frame.select(F.length("_raw"), look).collect()}
    assert [told[len(line)] for line in lines] == [True, True, False]  # the last is too long


def test_the_fields_of_a_wide_record_are_all_counted(spark, monkeypatch):
    """More of them than a number has bits."""
    wide = {f"c{number}": "int" for number in range(130)}
    full = dict.fromkeys(wide, 7)
    records = [full, {"c0": 1, "c64": 2, "c129": 3}, dict.fromkeys(wide), {**full, "x": 1}]
    lines = [json.dumps(one) for one in records]
    lines.append(lines[0].replace('"c129"', '"c63"'))  # written twice
    chosen = parse(spark, wide, lines)
    monkeypatch.setattr(parse_json, "is_plain", lambda source, kinds: F.lit(False))
    assert [one[2] for one in chosen] == [two[2] for two in parse(spark, wide, lines)]
    assert [one[1] for one in chosen] == [False, False, False, True, True]
