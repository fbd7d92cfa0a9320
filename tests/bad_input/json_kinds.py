"""JSON lines: values, names and shapes that do not fit, and bytes that are no text."""

import gzip

from tests.bad_input.kind import Kind, Landing

_FIT = "not a JSON record of this schema"
_NO_JSON = "not a JSON object"
_YEARS = "not within the years 1 to 9999"
_TWO = "more than one JSON value"
_UTF8 = "not valid UTF-8"
_BIG = "a number beyond the range of double"

ENCODINGS = (
    Kind(
        "invalid_utf8",
        "JSON: bytes that are not valid UTF-8",
        "`malformed`, line by line; the text is kept readable in `row`, the bytes in `raw`",
        files={"latin.json": '{"id":3,"name":"Müller"}\n{"id":4,"name":"ok"}\n'.encode("latin-1")},
        rows=('{"id":4,"name":"ok"}',),
        refused=(('{"id":3,"name":"M\ufffdller"}', f"malformed: {_UTF8}"),),
    ),
    Kind(
        "overlong_utf8",
        "JSON: overlong UTF-8 (`C0 AF`)",
        "`malformed`",
        files={"a.json": b'{"id":1,"name":"\xc0\xaf"}\n{"id":2}\n'},
        rows=('{"id":2}',),
        refused=(('{"id":1,"name":"\ufffd\ufffd"}', f"malformed: {_UTF8}"),),
    ),
    Kind(
        "surrogate_bytes",
        "JSON: a surrogate written as three bytes (CESU-8)",
        "`malformed`",
        files={"a.json": b'{"id":1,"name":"\xed\xa0\x80"}\n'},
        refused=(('{"id":1,"name":"\ufffd\ufffd\ufffd"}', f"malformed: {_UTF8}"),),
    ),
    Kind(
        "lone_surrogate",
        "JSON: an escape that is half a surrogate pair (`\\ud800`)",
        "`malformed`: no character, and Spark would write `?`; whole pairs are read",
        lines={
            r'{"id":1,"name":"\ud800"}': "half of a surrogate pair, which is no character",
            r'{"id":2,"name":"\uDC00x"}': "half of a surrogate pair, which is no character",
            r'{"id":3,"name":"\ud83d\ude00"}': '{"id":3,"name":"😀"}',
            r'{"id":4,"name":"\\ud800"}': '{"id":4,"name":"\\\\ud800"}',
        },
    ),
    Kind(
        "byte_order_mark",
        "JSON: a UTF-8 byte order mark",
        "read; a second one is `malformed`",
        files={
            "a.json": b'\xef\xbb\xbf{"id":5,"name":"first"}\n',
            "two.json": b'\xef\xbb\xbf\xef\xbb\xbf{"id":1}\n',
        },
        rows=('{"id":5,"name":"first"}',),
        refused=(('\ufeff{"id":1}', f"malformed: {_NO_JSON}"),),
    ),
    Kind(
        "undeclared_utf16",
        "JSON: UTF-16 where UTF-8 is declared",
        "`malformed`, every line",
        files={"a.json": '{"id":1}\n'.encode("utf-16-le")},
        refused=(
            ("".join(f"{c}\0" for c in '{"id":1}'), f"malformed: {_NO_JSON}"),
            ("\0", f"malformed: {_NO_JSON}"),
        ),
    ),
    Kind(
        "nul_bytes",
        "JSON: NUL bytes",
        "`malformed`; written as `\\u0000` the character is kept",
        files={"a.json": b'{"id":12,"name":"a\x00b"}\n\x00\n{"id":13,"name":"a\\u0000b"}\n'},
        rows=('{"id":13,"name":"a\\u0000b"}',),
        refused=(
            ('{"id":12,"name":"a\0b"}', f"malformed: {_NO_JSON}"),
            ("\0", f"malformed: {_NO_JSON}"),
        ),
    ),
    Kind(
        "control_characters",
        "JSON: raw control characters in a text",
        "`malformed`",
        lines={'{"id":1,"name":"a\tb"}': _NO_JSON, '{"id":2,"name":"a\x01b"}': _NO_JSON},
    ),
    Kind(
        "line_separators",
        "JSON: Unicode's own line separators; lines that end in CR alone",
        "the first are text, the second end a line",
        files={"a.json": '{"id":1,"name":"a\u2028b\u0085c"}\n', "cr.json": b'{"id":1}\r{"id":2}\r'},
        rows=('{"id":1,"name":"a\u2028b\u0085c"}', '{"id":1}', '{"id":2}'),
    ),
    Kind(
        "gzip_without_its_suffix",
        "JSON: a gzip file without `.gz` in its name",
        "`malformed`, its bytes in `raw`",
        files={"a.json": gzip.compress(b"", mtime=0)[:9] + b"\xff" + gzip.compress(b"")[10:]},
        refused=(
            ("\x1f\ufffd\x08\0\0\0\0\0\x02\ufffd\x03\0\0\0\0\0\0\0\0\0", f"malformed: {_UTF8}"),
        ),
    ),
)

SHAPES = (
    Kind(
        "good_among_bad",
        "good rows among all these",
        "written",
        lines={
            '{"id":1,"name":"a"}': '{"id":1,"name":"a"}',
            '{"id":2,"name":"b"}': '{"id":2,"name":"b"}',
        },
    ),
    Kind(
        "empty_files",
        "zero-byte files (also `.gz`, `.bz2`, `.zst`), blank lines",
        "no rows",
        files={
            "empty.json": "",
            "blank.json": "\n\n   \n\t\n\r\n",
            "e.json.gz": b"",
            "e.json.bz2": b"",
            "e.json.zst": b"",
        },
    ),
    Kind(
        "no_newline_at_end",
        "JSON: no line break after the last record",
        "read",
        files={"a.json": '{"id":1}\n{"id":2}'},
        rows=('{"id":1}', '{"id":2}'),
    ),
    Kind(
        "cut_json",
        "JSON: a file that breaks off in the middle of a record",
        "that record is `malformed`, those before it are read",
        files={"a.json": '{"id":1}\n{"id":2,"na'},
        rows=('{"id":1}',),
        refused=(('{"id":2,"na', f"malformed: {_NO_JSON}"),),
    ),
    Kind(
        "no_json",
        "JSON: single quotes, bare names, comments, trailing commas, `undefined`, `True`, "
        "an HTML error page",
        "`malformed`",
        lines={
            "{id:2}": _NO_JSON,
            '{"id":3,}': _NO_JSON,
            '/* c */{"id":5}': _NO_JSON,
            '{"id":6,"name":"a\\qb"}': _NO_JSON,
            '{"id":7 "name":"x"}': _NO_JSON,
            '{"id":}': _NO_JSON,
            '{"id":11,"name":undefined}': _NO_JSON,
            '{"id":True}': _NO_JSON,
            "<!DOCTYPE html><html>502 Bad Gateway</html>": _NO_JSON,
            '\u00a0{"id":13}': _NO_JSON,
            "id=5": _NO_JSON,
        },
    ),
    Kind(
        "text_after_record",
        "JSON: text after the record, two records on a line",
        "`malformed`, never lost in silence",
        lines={
            '{"id":1}{"id":2}': _TWO,
            '{"id":3} and so on': _TWO,
            '{"id":4},{"id":5}': _TWO,
            '{"id":6}}': _TWO,
            '{"id":4} // c': _TWO,
            '{"id":7': _NO_JSON,
            '{"id":8}]': _TWO,
            '{"id":8}] and so on': _TWO,
            '{"id":8}],[{"id":9}': _TWO,
        },
    ),
    Kind(
        "no_object",
        "JSON: scalars, `null`, arrays, where an object belongs",
        "`malformed`; `{}` is a row of NULLs",
        lines={
            "null": _NO_JSON,
            "123": _NO_JSON,
            '"text"': _NO_JSON,
            "true": _NO_JSON,
            "[]": _NO_JSON,
            '[{"id":1},{"id":2}]': _NO_JSON,
            "{}": "{}",
        },
    ),
    Kind(
        "duplicate_field",
        "JSON: a field written twice",
        "`malformed`, also when the two agree, when nobody declared it, and when one is escaped",
        lines={
            '{"id":6,"id":7}': "a field is written twice",
            '{"id":8}': '{"id":8}',
            '{"id":1,"name":"a","name":"a"}': "a field is written twice",
            '{"x":1,"x":2,"id":2}': "a field is written twice",
            '{"id":3,"\\u0069d":4}': "a field is written twice",
        },
    ),
    Kind(
        "duplicate_nested_field",
        "JSON: a field written twice inside a struct",
        "the last one is kept",
        lines={'{"id":14,"shop":{"city":"a","city":"b"}}': '{"id":14,"shop":{"city":"b"}}'},
    ),
    Kind(
        "million_fields",
        "JSON: one object with a million fields",
        "written, the undeclared fields in `_rescued`",
        test="test_an_object_of_a_million_fields_is_a_row",
    ),
    Kind(
        "huge_row",
        "a row of 50 MB",
        "written, or `malformed` when it is garbage",
        test="test_a_row_of_50_mb_is_a_row_like_all_others",
    ),
    Kind(
        "deep_nesting",
        "JSON: thousands of levels of nesting",
        "`malformed` beyond 1000 levels; the parser does not fall over",
        lines={
            '{"id":2,"x":' + "[" * 5000 + "]" * 5000 + "}": _NO_JSON,
            '{"id":3,"x":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}": _NO_JSON,
            "[" * 20000: _NO_JSON,
        },
    ),
    Kind(
        "long_and_odd_names",
        "JSON: field names that are empty, hold dots, quotes or the engine's own names",
        "rescued by their exact names",
        lines={
            '{"":10}': '{"_rescued":"{\\"\\":\\"10\\"}"}',
            '{"id":2,"a.b":1,"_rescued":"x","_source":"y"}': '{"id":2,"_rescued":"'
            '{\\"a.b\\":\\"1\\",\\"_rescued\\":\\"x\\",\\"_source\\":\\"y\\"}"}',
        },
    ),
)

DRIFT = (
    Kind(
        "field_added",
        "JSON: fields outside the schema",
        "`_rescued` / the batch refused / left out, by `unknown_fields`",
        lines={
            '{"id":10,"extra":{"deep":[1,2]},"gone":null}': '{"id":10,"_rescued":"'
            '{\\"extra\\":\\"{\\\\\\"deep\\\\\\":[1,2]}\\",\\"gone\\":null}"}'
        },
    ),
    Kind(
        "field_removed",
        "JSON: a declared field is missing",
        "NULL",
        lines={'{"name":"only"}': '{"name":"only"}'},
    ),
    Kind(
        "field_renamed",
        "JSON: a field renamed, or in another case",
        "rescued by its own name; JSON names are compared with case",
        lines={
            '{"ID":11}': '{"_rescued":"{\\"ID\\":\\"11\\"}"}',
            '{"ident":12}': '{"_rescued":"{\\"ident\\":\\"12\\"}"}',
        },
    ),
    Kind(
        "fields_reordered",
        "JSON: fields in another order",
        "read by name",
        lines={'{"name":"b","id":12}': '{"id":12,"name":"b"}'},
    ),
    Kind(
        "field_retyped",
        "JSON: a value of another type",
        "`malformed`, with the column's name; a text column keeps any value as it is written",
        lines={
            '{"id":"x"}': "id is not int",
            '{"id":1.5}': "id is not int",
            '{"id":true}': "id is not int",
            '{"id":{"z":1}}': "id is not int",
            '{"id":[1]}': "id is not int",
            '{"id":"5"}': "id is not int",
            '{"rate":"1.5"}': "rate is not double",
            '{"flag":1}': "flag is not boolean",
            '{"flag":"true"}': "flag is not boolean",
            '{"at":"yesterday"}': "at is not timestamp",
            '{"id":9,"name":{"kept":"as text"}}': '{"id":9,"name":"{\\"kept\\":\\"as text\\"}"}',
            '{"id":"x","rate":"y"}': "id is not int, rate is not double",
        },
    ),
    Kind(
        "struct_field_added",
        "JSON: a field added inside a declared struct",
        "left out",
        lines={
            '{"id":1,"shop":{"city":"a","zip":1,"added":5}}': '{"id":1,"shop":{"city":"a","zip":1}}'
        },
    ),
    Kind(
        "struct_field_removed",
        "JSON: a field missing inside a struct, an empty struct, a `null`",
        "NULL",
        lines={
            '{"id":2,"shop":{"city":"a"}}': '{"id":2,"shop":{"city":"a"}}',
            '{"id":18,"shop":{}}': '{"id":18,"shop":{}}',
            '{"id":6,"shop":null}': '{"id":6}',
        },
    ),
    Kind(
        "struct_field_retyped",
        "JSON: a value of another type inside a struct, an array or a map",
        "`malformed`; arrays of text keep any value as it is written",
        lines={
            '{"id":3,"shop":{"city":"a","zip":"x"}}': _FIT,
            '{"id":16,"shop":{"zip":99999999999}}': _FIT,
            '{"id":11,"parts":{"a":"x"}}': "parts is not map<string,int>",
            '{"id":9,"tags":[["a"],[1]]}': '{"id":9,"tags":["[\\"a\\"]","[1]"]}',
        },
    ),
    Kind(
        "array_for_struct",
        "JSON: an array or a scalar where a struct belongs",
        "`malformed`",
        lines={
            '{"id":4,"shop":[{"city":"a"}]}': "shop is not struct<city:string,zip:int>",
            '{"id":5,"shop":"a"}': "shop is not struct<city:string,zip:int>",
        },
    ),
    Kind(
        "struct_for_array",
        "JSON: an object or a scalar where an array or a map belongs",
        "`malformed`",
        lines={
            '{"id":7,"tags":"a"}': "tags is not array<string>",
            '{"id":8,"tags":{"a":1}}': "tags is not array<string>",
            '{"id":12,"parts":[1]}': "parts is not map<string,int>",
        },
    ),
)

NUMBERS = (
    Kind(
        "integer_overflow",
        "JSON: int, long and decimal beyond their type",
        "`malformed`; the largest that fit are read",
        lines={
            '{"id":2147483648}': "id is not int",
            '{"big":9223372036854775808}': "big is not bigint",
            '{"price":12345.67}': "price is not decimal(5,2)",
            '{"id":2147483647,"big":-9223372036854775808,"price":999.99}': (
                '{"id":2147483647,"big":-9223372036854775808,"price":999.99}'
            ),
        },
    ),
    Kind(
        "double_overflow",
        "JSON: `1e999`, in a number, a text or an undeclared field",
        "`malformed`: it is no Infinity",
        lines={
            '{"rate":1e999}': f"rate: {_BIG}",
            '{"rate":-1e400}': f"rate: {_BIG}",
            '{"rate":1e2147483648}': f"rate: {_BIG}",
            '{"name":1e999999999}': _BIG,
            '{"extra":1e999}': _BIG,
            '{"rate":1e308}': '{"rate":1.0E308}',
        },
    ),
    Kind(
        "huge_exponent",
        "JSON: a decimal with a huge exponent",
        "`malformed`",
        lines={
            '{"price":1e999999999}': "price is not decimal(5,2)",
            '{"price":1E-2147483649}': "price is not decimal(5,2)",
        },
    ),
    Kind(
        "small_numbers",
        "JSON: numbers too small for a double; more digits than a decimal's scale",
        "0; rounded",
        lines={'{"rate":1e-9999}': '{"rate":0.0}', '{"price":1.005}': '{"price":1.01}'},
    ),
    Kind(
        "ten_thousand_digits",
        "JSON: a number of 10 000 digits",
        "`malformed`, in whatever column",
        lines={
            '{"big":' + "9" * 10_000 + "}": _NO_JSON,
            '{"name":' + "9" * 10_000 + "}": _NO_JSON,
            '{"x":' + "9" * 10_000 + "}": _NO_JSON,
            '{"rate":0.' + "9" * 10_000 + "}": _NO_JSON,
        },
    ),
    Kind(
        "odd_numbers",
        "JSON: `007`, `+1`, `.5`, `0x1F`, `1e3` and `1.0` for an integer",
        "`malformed`; `-0` is 0",
        lines={
            '{"id":007}': _NO_JSON,
            '{"id":+1}': _NO_JSON,
            '{"id":.5}': _NO_JSON,
            '{"id":0x1F}': _NO_JSON,
            '{"big":1e3}': "big is not bigint",
            '{"big":1.0}': "big is not bigint",
            '{"id":-0}': '{"id":0}',
        },
    ),
    Kind(
        "nan_and_infinity",
        "JSON: `NaN`, `Infinity`, `-Infinity`",
        "values of a double; `malformed` in other columns",
        lines={
            '{"rate":NaN}': '{"rate":"NaN"}',
            '{"rate":Infinity}': '{"rate":"Infinity"}',
            '{"rate":"-Infinity"}': '{"rate":"-Infinity"}',
            '{"rate":"inf"}': "rate is not double",
            '{"price":NaN}': "price is not decimal(5,2)",
            '{"id":NaN}': "id is not int",
        },
    ),
)

TIMES = (
    Kind(
        "time_zones",
        "JSON: times with an offset, a zone name, or none",
        "read; without a zone they are UTC",
        lines={
            '{"id":2,"at":"2026-03-29T02:30:00+02:00"}': '{"id":2,"at":"2026-03-29T00:30:00.000Z"}',
            '{"id":19,"at":"2026-01-01 00:00:00 Europe/Berlin"}': (
                '{"id":19,"at":"2025-12-31T23:00:00.000Z"}'
            ),
            '{"id":1,"at":"2026-03-29T02:30:00"}': '{"id":1,"at":"2026-03-29T02:30:00.000Z"}',
            '{"id":20,"at":"2026-01-01T00:00:00+25:00"}': "at is not timestamp",
        },
    ),
    Kind(
        "leap_second",
        "JSON: a leap second, 24:00",
        "`malformed`",
        lines={
            '{"at":"2016-12-31T23:59:60Z"}': "at is not timestamp",
            '{"at":"2026-01-01T24:00:00Z"}': "at is not timestamp",
        },
    ),
    Kind(
        "no_such_day",
        "JSON: 30 February, month 13, an empty text",
        "`malformed`; 29 February of a leap year is read",
        lines={
            '{"day":"2026-02-30"}': "day is not date",
            '{"at":"2026-02-30T00:00:00Z"}': "at is not timestamp",
            '{"at":"2026-13-45"}': "at is not timestamp",
            '{"at":""}': "at is not timestamp",
            '{"at":"2024-02-29T00:00:00Z"}': '{"at":"2024-02-29T00:00:00.000Z"}',
        },
    ),
    Kind(
        "first_and_last_year",
        "JSON: dates of the years 0001 and 9999",
        "read",
        lines={
            '{"at":"0001-01-01T00:00:00Z","day":"0001-01-01"}': (
                '{"at":"0001-01-01T00:00:00.000Z","day":"0001-01-01"}'
            ),
            '{"at":"9999-12-31T23:59:59.999999Z","day":"9999-12-31"}': (
                '{"at":"9999-12-31T23:59:59.999Z","day":"9999-12-31"}'
            ),
            '{"day":"1582-10-10"}': '{"day":"1582-10-10"}',
        },
    ),
    Kind(
        "years_beyond",
        "JSON: the year 0, negative years, 10000 and beyond, epoch numbers in another unit",
        "`malformed`: most readers of a table fail on such years",
        lines={
            '{"at":"0000-01-01T00:00:00Z"}': f"at: {_YEARS}",
            '{"at":"-0001-01-01T00:00:00Z"}': f"at: {_YEARS}",
            '{"at":"10000-01-01T00:00:00Z"}': f"at: {_YEARS}",
            '{"day":"-0001-01-01"}': f"day: {_YEARS}",
            '{"day":"10000-01-01"}': f"day: {_YEARS}",
            '{"at":"999999-01-01T00:00:00Z"}': "at is not timestamp",
            '{"at":1767225600000}': f"at: {_YEARS}",
            '{"at":9223372036854775807}': f"at: {_YEARS}",
            '{"at":1767225600}': '{"at":"2026-01-01T00:00:00.000Z"}',
        },
    ),
)

TEXTS = (
    Kind(
        "script_in_a_value",
        "HTML and script in values",
        "kept verbatim in tables, escaped in the report",
        test="test_script_in_values_and_names_is_text_in_the_report",
        lines={
            '{"id":1,"name":"<script>alert(1)</script>"}': (
                '{"id":1,"name":"<script>alert(1)</script>"}'
            )
        },
    ),
    Kind(
        "sql_in_a_value",
        "SQL and template code in values",
        "kept verbatim",
        lines={
            '{"name":"\'; DROP TABLE t; --"}': '{"name":"\'; DROP TABLE t; --"}',
            '{"name":"${SLUICE_ROOT} {{ 1+1 }}"}': '{"name":"${SLUICE_ROOT} {{ 1+1 }}"}',
        },
    ),
)

COLUMNS = {
    "id": "int",
    "big": "bigint",
    "name": "string",
    "price": "decimal(5,2)",
    "rate": "double",
    "at": "timestamp",
    "day": "date",
    "flag": "boolean",
    "shop": "struct<city:string,zip:int>",
    "tags": "array<string>",
    "parts": "map<string,int>",
}

LINES = Landing(
    "json",
    {"format": "json", "pattern": "*.json*", "schema": COLUMNS},
    ENCODINGS + SHAPES + DRIFT + NUMBERS + TIMES + TEXTS,
    ("next.json", '{"id":99}\n'),
)

LOCAL = Landing(
    "local_times",
    {"format": "json", "schema": {"at": "timestamp"}, "options": {"timeZone": "Europe/Berlin"}},
    (
        Kind(
            "dst_gap",
            "an hour that daylight saving leaves out (`timeZone: Europe/Berlin`)",
            "an hour later, by the offset before the change",
            lines={'{"at":"2026-03-29T02:30:00"}': '{"at":"2026-03-29T01:30:00.000Z"}'},
        ),
        Kind(
            "dst_overlap",
            "an hour that comes twice",
            "the first of the two; an offset in the text decides",
            lines={
                '{"at":"2026-10-25T02:30:00"}': '{"at":"2026-10-25T00:30:00.000Z"}',
                '{"at":"2026-10-25T02:30:00+01:00"}': '{"at":"2026-10-25T01:30:00.000Z"}',
            },
        ),
    ),
    ("next.json", '{"at":"2026-01-01T00:00:00"}\n'),
)

TIMES_INSIDE = Landing(
    "times_inside",
    {
        "format": "json",
        "schema": {
            "id": "bigint",
            "shop": "struct<at:timestamp,name:string>",
            "log": "array<struct<day:date,at:timestamp>>",
            "days": "map<string,array<date>>",
        },
    },
    (
        Kind(
            "years_beyond_inside",
            "JSON: a time inside of an object or a list that is no time of the years 1 to 9999, or "
            "a number of another unit",
            "`malformed`, with the column",
            lines={
                '{"shop":{"at":1767225600000}}': f"shop: {_YEARS}",
                '{"shop":{"at":1767225600000000}}': f"shop: {_YEARS}",
                '{"shop":{"at":10000000000000000001}}': _FIT,
                '{"log":[null,{"at":"10000-01-01T00:00:00Z"}]}': f"log: {_YEARS}",
                '{"log":[{"day":"2026-01-01","at":55340232221128}]}': f"log: {_YEARS}",
                '{"days":{"a":["2026-01-01"],"b":["0000-01-01"]}}': f"days: {_YEARS}",
                '{"id":1767225600000,"shop":{"at":1767225600,"name":"1767225600000"}}': (
                    '{"id":1767225600000,"shop":{"at":"2026-01-01T00:00:00.000Z",'
                    '"name":"1767225600000"}}'
                ),
                '{"log":[{"day":"9999-12-31"},null,{}],"days":{"a":[null]}}': (
                    '{"log":[{"day":"9999-12-31"},null,{}],"days":{"a":[null]}}'
                ),
            },
        ),
    ),
    ("next.json", '{"id":1}\n'),
)
