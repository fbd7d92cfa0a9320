"""Names of types that Spark does not have, and what it calls them."""

import re

from ..errors import suggest

_SPARK = (
    "string binary boolean byte tinyint short smallint int integer long bigint float real double "
    "date timestamp timestamp_ntz timestamp_ltz variant decimal dec numeric char character varchar "
    "interval void time array map struct"
)
_DECLARED = "string binary boolean tinyint smallint int bigint float double date timestamp variant"
_ELSEWHERE = {
    "bigint": "int64 uint32 uint64 int8_t serial bigserial",
    "binary": "bytes bytea blob varbinary",
    "boolean": "bool bit logical",
    "decimal(18, 2)": "decimal numeric number dec money",
    "double": "float64 real double_precision",
    "float": "float32 float4",
    "int": "int32 int4 uint16 mediumint",
    "smallint": "int16 int2 uint8",
    "string": "varchar nvarchar varchar2 char character nchar text str utf8 object uuid enum json "
    "category clob",
    "timestamp": "datetime datetime64 timestamptz timestamp_ltz timestamp_tz datetime2 instant",
    "tinyint": "int8",
    "array<string>": "list array set",
    "struct<name: string>": "dict record struct row",
    "map<string, string>": "map",
}
_CALLED = {other: spark for spark, others in _ELSEWHERE.items() for other in others.split()}
_NULLABLE = re.compile(r"\s+(NOT\s+NULL|COMMENT\s.*)$", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"\s*(`(?:[^`]|``)*`|[^\s:`]+)\s*:?\s*(.+)", re.DOTALL)
_NESTED = re.compile(r"(array|map|struct)\s*<(.*)>", re.IGNORECASE | re.DOTALL)


def suggest_type(written: str) -> str:
    """`Did you mean 'string'? ` for a type that Spark does not have; empty where none is near."""
    name = _stem(written)
    if name in _CALLED:
        return f"Did you mean {_CALLED[name]!r}? "
    return suggest(name, _DECLARED.split())


def find_wrong_type(type_: str) -> str:
    """The first type within a nested one that is like one of Spark's and is none; empty where there
    is none. What is like nothing we know is left to Spark."""
    nested = _NESTED.fullmatch(type_.strip())
    if nested is None:
        known = _stem(type_) in _SPARK.split()
        return "" if known or not suggest_type(type_) else type_.strip()
    parts = _split(nested[2])
    if nested[1].lower() == "struct":
        fields = [_FIELD.fullmatch(_NULLABLE.sub("", part)) for part in parts]
        parts = [field[2] for field in fields if field]
    return next((wrong for part in parts if (wrong := find_wrong_type(part))), "")


def _stem(type_: str) -> str:
    """`VARCHAR(80)` -> `varchar`."""
    return re.split(r"[\s(<]", type_.strip().lower())[0]


def _split(text: str) -> list[str]:
    """The parts between the commas that no bracket and no quotes hold."""
    parts, depth, quoted = [""], 0, ""
    for sign in text:
        if quoted or sign in "`'":
            quoted = "" if sign == quoted else quoted or sign
        else:
            depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
