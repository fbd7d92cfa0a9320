"""Spark's types in PostgreSQL: which column holds every value of one, and how a value travels.

A value travels as text in PostgreSQL's own notation, so that the server reads it into whatever type
the column has, and refuses what does not fit.
"""

import re

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

_TYPES = {
    StringType: "text",
    BinaryType: "bytea",
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    DateType: "date",
    TimestampType: "timestamp with time zone",
    TimestampNTZType: "timestamp without time zone",
    NullType: "text",
    StructType: "jsonb",
    MapType: "jsonb",
    VariantType: "jsonb",
}
_WIDER = {
    "text": {"character varying"},
    "jsonb": {"json"},
    "real": {"double precision"},
    "bigint": {"numeric"},
    "integer": {"bigint", "numeric", "double precision"},
    "smallint": {"integer", "bigint", "numeric", "real", "double precision"},
}
"""Type -> others whose columns hold every value of it, unchanged."""
_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 19}
_JSON = ("json", "jsonb")
# Spark's own default keeps milliseconds and leaves out fields that are NULL.
_JSON_OPTIONS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def _element(kind: DataType) -> DataType | None:
    """The type of the elements of an array that is one in PostgreSQL as well: one of simple types;
    None for all else."""
    if not isinstance(kind, ArrayType) or isinstance(kind.elementType, ArrayType):
        return None
    return None if usual_type(kind.elementType) in (None, "jsonb") else kind.elementType


def usual_type(kind: DataType) -> str | None:
    """The type of a column that is made for a Spark type, as PostgreSQL spells it; None where there
    is none."""
    if isinstance(kind, DecimalType):
        return f"numeric({kind.precision},{kind.scale})"
    if isinstance(kind, ArrayType):
        simple = _element(kind)
        return (
            f"{usual_type(simple)}[]"
            if simple is not None
            else usual_type(kind.elementType) and "jsonb"
        )
    return next((type_ for class_, type_ in _TYPES.items() if isinstance(kind, class_)), None)


def holds(type_: str, kind: DataType) -> bool:
    """True when a column of a type holds every value of a Spark type unchanged."""
    usual = usual_type(kind)
    if usual is None:
        return False
    if type_ == usual or type_ in _WIDER.get(usual, ()):
        return True
    if (element := _element(kind)) is not None:
        return type_.endswith("[]") and holds(type_[:-2], element)
    digits, scale = (
        (kind.precision, kind.scale)
        if isinstance(kind, DecimalType)
        else (_DIGITS.get(type(kind)), 0)
    )
    bounds = re.fullmatch(r"numeric(?:\((\d+),(\d+)\))?", type_)
    if digits is None or bounds is None:
        return False
    return bounds[1] is None or (
        int(bounds[2]) >= scale and int(bounds[1]) - int(bounds[2]) >= digits - scale
    )


def encode(value: Column, kind: DataType, type_: str) -> Column:
    """A value as text that PostgreSQL reads into a column of a type."""
    if isinstance(kind, StructType | MapType | VariantType) or (
        isinstance(kind, ArrayType) and (type_ in _JSON or _element(kind) is None)
    ):
        return F.to_json(value, _JSON_OPTIONS)
    if isinstance(kind, ArrayType):
        return F.concat(
            F.lit("{"),
            F.array_join(
                F.transform(value, lambda element: _encode_element(element, kind.elementType)), ","
            ),
            F.lit("}"),
        )
    return _as_text(value, kind)


def _encode_element(element: Column, kind: DataType) -> Column:
    escaped = F.replace(
        F.replace(_as_text(element, kind), F.lit("\\"), F.lit("\\\\")), F.lit('"'), F.lit('\\"')
    )
    return F.when(element.isNull(), F.lit("NULL")).otherwise(
        F.concat(F.lit('"'), escaped, F.lit('"'))
    )


def is_unstorable(value: Column, kind: DataType) -> Column:
    """True for text, or text in an array, that PostgreSQL cannot store: with U+0000, or not UTF-8.
    (In JSON it is an escape, which the server refuses.)"""
    if isinstance(kind, StringType):
        return value.contains("\0") | ~F.is_valid_utf8(value)
    if (of_element := _element(kind)) is None:
        return F.lit(False)
    return F.exists(value, lambda element: is_unstorable(element, of_element))


def _as_text(value: Column, kind: DataType) -> Column:
    if isinstance(kind, StringType):
        return F.validate_utf8(value)  # Java would put another character for a byte that is none
    if isinstance(kind, BinaryType):
        return F.concat(F.lit("\\x"), F.hex(value))
    if isinstance(kind, TimestampType):
        return F.date_format(
            value, "yyyy-MM-dd HH:mm:ss.SSSSSSXXXXX"
        )  # with its offset, whatever zone the session has
    return value.cast("string")
