"""CSV: headers, quotes, counts of fields and values that do not fit."""

import gzip

from tests.bad_input.kind import UNREADABLE, Kind, Landing

_COUNT = "not as many fields as the header"
_NO_HEADER = "the file's first line names none of the schema's columns"
_YEARS = "not within the years 1 to 9999"
_HEADER = "id,name,price,at"

HEADERS = (
    Kind(
        "csv_good",
        "CSV: CRLF line ends, quoted separators and doubled quotes",
        "read",
        files={"a.csv": 'id,name,price,at\r\n3,"a,b",1.5,\r\n4,"say ""hi""",,\r\n'},
        rows=('{"id":3,"name":"a,b","price":1.5}', '{"id":4,"name":"say \\"hi\\""}'),
    ),
    Kind(
        "csv_header_only",
        "CSV: a header without rows, a header that comes again, blank lines before it",
        "the header is no row, wherever it stands",
        files={
            "only.csv": "id,name,price,at\n",
            "again.csv": "id,name,price,at\n17,a,1,\nid,name,price,at\n18,b,1,\n",
            "blank.csv": "\n  \nid,name,price,at\n20,a,1,\n",
        },
        rows=(
            '{"id":17,"name":"a","price":1.0}',
            '{"id":18,"name":"b","price":1.0}',
            '{"id":20,"name":"a","price":1.0}',
        ),
    ),
    Kind(
        "csv_reordered",
        "CSV: columns in another order, in another case, with spaces around or in quotes",
        "matched by name",
        files={
            "order.csv": "price,at,id,name\n1.5,,9,r\n",
            "case.csv": "ID,Name,PRICE,At\n13,a,1,\n",
            "quoted.csv": '"id","name",price , at\n14,a,1,\n',
            "sp ace%20ü+#?.csv": "name,at,price,id\na,,1,29\n",
        },
        rows=(
            '{"id":9,"name":"r","price":1.5}',
            '{"id":13,"name":"a","price":1.0}',
            '{"id":14,"name":"a","price":1.0}',
            '{"id":29,"name":"a","price":1.0}',
        ),
    ),
    Kind(
        "csv_added",
        "CSV: a column added, renamed or written twice",
        "`_rescued` / the batch refused / left out, by `unknown_fields`; a warning in the report",
        files={
            "added.csv": "id,more,name,price,at\n10,extra,a,1,\n11,,b,2,\n",
            "twice.csv": "id,id,name,price,at\n30,31,a,1,\n",
            "renamed.csv": "id,title,price,at\n14,a,1,\n",
        },
        rows=(
            '{"id":10,"name":"a","price":1.0,"_rescued":"{\\"more\\":\\"extra\\"}"}',
            '{"id":11,"name":"b","price":2.0}',
            '{"id":30,"name":"a","price":1.0,"_rescued":"{\\"id\\":\\"31\\"}"}',
            '{"id":14,"price":1.0,"_rescued":"{\\"title\\":\\"a\\"}"}',
        ),
        warning="columns that 1 file(s) have beside the schema: more (first: added.csv)",
    ),
    Kind(
        "csv_removed",
        "CSV: a column is missing",
        "NULL, and a warning in the report",
        files={"a.csv": "id,name\n12,a\n"},
        rows=('{"id":12,"name":"a"}',),
        warning="columns that 1 file(s) lack and read as NULL: price, at (first: a.csv)",
    ),
    Kind(
        "csv_no_header",
        "CSV: no header, or another separator than the declared one",
        "`malformed` line by line, the first one too",
        files={
            "headless.csv": "15,a,1,\n16,b,2,\n",
            "semicolon.csv": "id;name;price;at\n1;a;1;\n",
        },
        refused=tuple(
            (line, f"malformed: {_NO_HEADER}")
            for line in ("15,a,1,", "16,b,2,", "id;name;price;at", "1;a;1;")
        ),
    ),
    Kind(
        "csv_endless_header",
        "CSV: a first line of 200 KB that is no header",
        "`malformed`; the report shows its beginning",
        files={"a.csv": "x" * 200_000 + "\n1,a,1,\n"},
        refused=(
            ("x" * 50 + "…200000…" + "x" * 20, f"malformed: {_NO_HEADER}"),
            ("1,a,1,", f"malformed: {_NO_HEADER}"),
        ),
        warning="x" * 80 + "… (first: a.csv)",
    ),
)

RECORDS = (
    Kind(
        "csv_field_count",
        "CSV: too many or too few fields",
        "`malformed`",
        header=_HEADER,
        lines={
            "5,a,1,,9": _COUNT,
            "6,a": _COUNT,
            "7": _COUNT,
            "8,a,,": '{"id":8,"name":"a"}',
            ",,,": "{}",
        },
    ),
    Kind(
        "csv_open_quote",
        "CSV: an unclosed quote; a quote inside a value",
        "`malformed`; read as it stands",
        header=_HEADER,
        lines={
            '25,b,"2,': "a quoted value is not closed",
            '26,5" pipe,3,': '{"id":26,"name":"5\\" pipe","price":3.0}',
        },
    ),
    Kind(
        "csv_cut",
        "CSV: a file that breaks off in the middle of a record",
        "that record is `malformed`, those before it are read",
        files={"a.csv": f"{_HEADER}\n1,a,1,\n2,b"},
        rows=('{"id":1,"name":"a","price":1.0}',),
        refused=(("2,b", f"malformed: {_COUNT}"),),
    ),
    Kind(
        "csv_cut_gzip",
        "CSV: a truncated gzip file with a whole header",
        "one quarantine row `unreadable_file`, and none of its rows",
        files={
            "a.csv.gz": gzip.compress(
                (
                    f"{_HEADER}\n" + "".join(f"{n},{n * 7919 % 10007},,\n" for n in range(20_000))
                ).encode()
            )[:-20],
        },
        refused=(
            (
                None,
                f"{UNREADABLE}: cannot be read: java.io.EOFException: "
                "Unexpected end of input stream",
            ),
        ),
    ),
    Kind(
        "csv_gzip",
        "CSV: gzip, with columns in another order",
        "read",
        files={"a.csv.gz": gzip.compress(b"name,at,id,price\na,,27,1\n")},
        rows=('{"id":27,"name":"a","price":1.0}',),
    ),
    Kind(
        "csv_encoding",
        "CSV: invalid UTF-8, NUL bytes, a byte order mark",
        "`malformed` with the bytes in `raw`; kept in a text; read",
        files={
            "latin.csv": f"{_HEADER}\n1,Mü,,\n".encode("latin-1"),
            "nul.csv": f"{_HEADER}\n2,a\0b,,\n",
            "bom.csv": f"\ufeff{_HEADER}\n19,a,1,\n",
        },
        rows=('{"id":2,"name":"a\\u0000b"}', '{"id":19,"name":"a","price":1.0}'),
        refused=(("1,M\ufffd,,", "malformed: not valid UTF-8"),),
    ),
    Kind(
        "csv_numbers",
        "CSV: numbers beyond their type, with spaces, `1e2`, `1_000`, `0x1F` "
        "or 10 000 digits for an integer",
        "`malformed`, with the column's name",
        header=_HEADER,
        lines={
            "21,a,1e999,": "price: a number beyond the range of double",
            "99999999999,b,1,": "id is not int",
            "x,d,1,": "id is not int",
            "23,e,abc,": "price is not double",
            " 11,n,,": "id is not int",
            "1e2,l,,": "id is not int",
            "1.0,m,,": "id is not int",
            "1_000,p,,": "id is not int",
            "0x1F,k,,": "id is not int",
            "9" * 10_000 + ",a,,": "id is not int",
            "4,d," + "9" * 10_000 + ",": "price: a number beyond the range of double",
            "5,e,1e-9999,": '{"id":5,"name":"e","price":0.0}',
            "22,c,Infinity,": '{"id":22,"name":"c","price":"Infinity"}',
            "6,f,NaN,": '{"id":6,"name":"f","price":"NaN"}',
            "8,h,inf,": "price is not double",
        },
    ),
    Kind(
        "csv_times",
        "CSV: a leap second, 30 February, years beyond 0001 to 9999, epoch numbers",
        "`malformed`",
        header=_HEADER,
        lines={
            "2,b,,2016-12-31T23:59:60Z": "at is not timestamp",
            "3,c,,2026-02-30": "at is not timestamp",
            "9,i,,1767225600": "at is not timestamp",
            "5,e,,10000-01-01T00:00:00Z": f"at: {_YEARS}",
            "6,f,,-0001-01-01T00:00:00Z": f"at: {_YEARS}",
            "7,g,,0000-01-01T00:00:00Z": f"at: {_YEARS}",
            "4,d,,0001-01-01T00:00:00Z": '{"id":4,"name":"d","at":"0001-01-01T00:00:00.000Z"}',
        },
    ),
    Kind(
        "csv_empty_text",
        "CSV: empty values, empty quotes, blanks, `null`",
        "NULL; NULL; kept; kept",
        header=_HEADER,
        lines={
            "1,,,": '{"id":1}',
            '2,"",,': '{"id":2}',
            '3," ",,': '{"id":3,"name":" "}',
            "4,null,,": '{"id":4,"name":"null"}',
        },
    ),
    Kind(
        "csv_injection",
        "CSV: formulas (`=cmd|…`, `@SUM`, `+1`, `-1`)",
        "kept verbatim: a table is no spreadsheet",
        header=_HEADER,
        lines={
            "1,\"=cmd|' /C calc'!A0\",,": '{"id":1,"name":"=cmd|\' /C calc\'!A0"}',
            "2,@SUM(1+1),,": '{"id":2,"name":"@SUM(1+1)"}',
            "3,+1,,": '{"id":3,"name":"+1"}',
            "4,-1,,": '{"id":4,"name":"-1"}',
        },
    ),
)

SHEETS = Landing(
    "csv",
    {
        "format": "csv",
        "pattern": "*.csv*",
        "schema": {"id": "int", "name": "string", "price": "double", "at": "timestamp"},
    },
    HEADERS + RECORDS,
    ("next.csv", "name,price,id,at\na,1.5,99,\n"),
    ending="csv",
)
