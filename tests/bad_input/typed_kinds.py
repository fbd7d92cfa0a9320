"""Parquet, ORC and Avro: files that carry a schema, and one that is not the declared one."""

import io
from collections.abc import Callable

import pyarrow as pa
from pyarrow import orc, parquet

from tests.bad_input.kind import UNREADABLE, Kind, Landing

_SCHEMA = {
    "a": "bigint",
    "s": "string",
    "d": "double",
    "at": "timestamp",
    "shop": "struct<city:string,zip:int>",
    "log": "array<struct<at:timestamp>>",
}
_TIMES = pa.list_(pa.struct([("at", pa.timestamp("us", "UTC"))]))


def encode(module, **columns) -> bytes:
    """One Parquet or ORC file."""
    buffer = io.BytesIO()
    module.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def long(*values: int) -> pa.Array:
    """Values of a bigint column."""
    return pa.array(values, pa.int64())


def struct(values: list[dict], **fields: pa.DataType) -> pa.Array:
    """Values of a struct column."""
    return pa.array(values, pa.struct(list(fields.items())))


def _drift(format_: str, write: Callable[..., bytes]) -> tuple[Kind, ...]:
    called = {"parquet": "Parquet", "orc": "ORC"}[format_]
    good = write(a=long(*range(500)), s=[f"text {n}" for n in range(500)])
    return (
        Kind(
            f"{format_}_no_rows",
            f"{called}: a file of zero rows, a zero-byte file",
            "no rows",
            files={"none": write(a=long(), s=pa.array([], pa.string())), "empty": b""},
        ),
        Kind(
            f"{format_}_struct",
            f"{called}: a field added, missing or moved inside a struct",
            "left out; NULL; matched by name",
            files={
                "added": write(
                    a=long(1),
                    shop=struct(
                        [{"city": "c", "zip": 1, "more": "m"}],
                        city=pa.string(),
                        zip=pa.int32(),
                        more=pa.string(),
                    ),
                ),
                "removed": write(a=long(2), shop=struct([{"city": "c"}], city=pa.string())),
                "moved": write(
                    a=long(3),
                    shop=struct([{"zip": 1, "city": "c"}], zip=pa.int32(), city=pa.string()),
                ),
            },
            rows=(
                '{"a":1,"shop":{"city":"c","zip":1}}',
                '{"a":2,"shop":{"city":"c"}}',
                '{"a":3,"shop":{"city":"c","zip":1}}',
            ),
        ),
        Kind(
            f"{format_}_odd_names",
            f"{called}: undeclared columns whose names hold blanks and dots",
            "`_rescued`",
            files={"a": write(**{"a": long(5), "b c.d": ["x"]})},
            rows=('{"a":5,"_rescued":"{\\"b c.d\\":\\"x\\"}"}',),
        ),
        Kind(
            f"{format_}_nan",
            f"{called}: NaN and infinities",
            "values",
            files={"a": write(d=pa.array([float("nan"), float("-inf")]))},
            rows=('{"d":"NaN"}', '{"d":"-Infinity"}'),
        ),
        Kind(
            f"{format_}_years",
            f"{called}: times outside the years 1 to 9999",
            "`malformed`",
            files={
                "a": write(at=pa.array([253_402_300_800_000_000, 0], pa.timestamp("us", "UTC")))
            },
            rows=('{"at":"1970-01-01T00:00:00.000Z"}',),
            refused=(
                (
                    '{"at":"+10000-01-01T00:00:00.000Z"}',
                    "malformed: at: not within the years 1 to 9999",
                ),
            ),
        ),
        Kind(
            f"{format_}_years_inside",
            f"{called}: such a time inside of a list or a struct",
            "`malformed`",
            files={
                "a": write(log=pa.array([[{"at": 253_402_300_800_000_000}], [{"at": 0}]], _TIMES))
            },
            rows=('{"log":[{"at":"1970-01-01T00:00:00.000Z"}]}',),
            refused=(
                (
                    '{"log":[{"at":"+10000-01-01T00:00:00.000Z"}]}',
                    "malformed: log: not within the years 1 to 9999",
                ),
            ),
        ),
        Kind(
            f"{format_}_truncated",
            f"{called}: a truncated file",
            "`unreadable_file`",
            files={"a": good[: len(good) // 2]},
            refused=((None, UNREADABLE),),
        ),
    )


PARQUET = Landing(
    "parquet",
    {"format": "parquet", "schema": _SCHEMA},
    _drift("parquet", lambda **c: encode(parquet, **c)),
    ("next", encode(parquet, a=long(9))),
    ending="parquet",
)
ORC = Landing(
    "orc",
    {"format": "orc", "schema": _SCHEMA},
    _drift("orc", lambda **c: encode(orc, **c)),
    ("next", encode(orc, a=long(9))),
    ending="orc",
)

_MOVE = "(Move|move) the files? out of the landing folder"


def _ends(id_: str, comes: str, content: bytes, error: str) -> Kind:
    return Kind(
        id_,
        comes,
        "a clear error that names the file; nothing is read",
        files={id_: content},
        error=f"{id_}: {error}.*{_MOVE}",
    )


REFUSED = Landing(
    "refused",
    {"format": "parquet", "schema": _SCHEMA},
    (
        _ends(
            "parquet_retyped",
            "Parquet: a column of another type",
            encode(parquet, a=["text"]),
            "a file's column has another type than the schema says",
        ),
        _ends(
            "parquet_struct_retyped",
            "Parquet: a field of another type inside a struct",
            encode(parquet, shop=struct([{"zip": "x"}], zip=pa.string())),
            "a file's column has another type than the schema says",
        ),
        _ends(
            "parquet_scalar_for_struct",
            "Parquet: a scalar where a struct belongs",
            encode(parquet, shop=["x"]),
            r"column 'shop' is string in 1 file\(s\) and struct",
        ),
        _ends(
            "parquet_array_for_scalar",
            "Parquet: an array where a scalar belongs",
            encode(parquet, a=pa.array([[3]])),
            r"column 'a' is array<bigint> in 1 file\(s\) and bigint",
        ),
        _ends(
            "parquet_unsigned",
            "Parquet: unsigned longs where longs belong",
            encode(parquet, a=pa.array([2**64 - 1], pa.uint64())),
            r"column 'a' is decimal\(20,0\) in 1 file\(s\) and bigint",
        ),
        _ends(
            "parquet_two_cases",
            "Parquet: two columns whose names differ only in case",
            encode(parquet, a=long(1), A=long(2)),
            "Spark cannot read the file's schema",
        ),
    ),
    ("next", encode(parquet, a=long(9))),
)
