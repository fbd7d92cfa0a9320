"""What stands at the ends of a nested value that was read: looked at by Spark's compiled functions
of arrays where these can tell, because a lambda costs a microsecond an element."""

from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DateType,
    DoubleType,
    FloatType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from .ddl import YEARS, outside_years

_RARE = {
    StringType: "\0",
    DateType: "1111-11-11",
    TimestampType: "1111-11-11",
    TimestampNTZType: "1111-11-11",
}
"""Values that arrays hardly ever have; -7777 of numbers."""


def is_scalar(kind: DataType) -> bool:
    """True for a type whose values have no names and no braces."""
    return isinstance(kind, AtomicType) and not isinstance(kind, VariantType)


def find_doubts(value: Column, kind: DataType) -> list[Column] | None:
    """Conditions of which one is true where a number was read as Infinity, at any depth; None where
    only the text can tell whether all is as it was written."""
    if isinstance(kind, StructType):
        return _gather([find_doubts(value[f.name], f.dataType) for f in kind.fields])
    if isinstance(kind, MapType):
        return find_doubts(F.map_values(value), ArrayType(kind.valueType))
    if isinstance(kind, ArrayType):
        return _find_in_elements(value, kind.elementType)
    if isinstance(kind, StringType):
        return [value.contains("Infinity")]
    if isinstance(kind, DoubleType | FloatType):
        return [F.abs(value) == F.lit(float("inf"))]
    return [] if _keeps_numbers(kind) else None


def find_leaf(
    value: Column, kind: DataType, look: Callable[[Column, DataType], Column | None]
) -> Column | None:
    """True where one of the leaves is what `look` asks for; None where it asks of none of these
    types."""
    if isinstance(kind, StructType):
        inner = [find_leaf(value[f.name], f.dataType, look) for f in kind.fields]
        asked = [one for one in inner if one is not None]
        return reduce(Column.__or__, asked) if asked else None
    if isinstance(kind, MapType):
        return find_leaf(F.map_values(value), ArrayType(kind.valueType), look)
    if isinstance(kind, ArrayType):
        of = kind.elementType
        asked_of = find_leaf(F.lit(None).cast(of), of, look) is not None
        return (
            F.exists(value, lambda one: _or_false(find_leaf(one, of, look))) if asked_of else None
        )
    found = look(value, kind)
    return None if found is None else _or_false(found)


def _or_false(condition: Column | None) -> Column:
    return F.lit(False) if condition is None else F.coalesce(condition, F.lit(False))


def find_years(kinds: Mapping[str, DataType], value: Callable[[str], Column]) -> list[Column]:
    """For each column that holds dates or times, at any depth, a defect where one of them is not
    within the years 1 to 9999. Args: value: of a column, by its name."""

    def look(time: Column, kind: DataType) -> Column | None:
        return outside_years(time) if holds_time(kind) else None

    found = {name: find_leaf(value(name), kind, look) for name, kind in kinds.items()}
    return [
        F.when(beyond, F.lit(f"{name}: {YEARS}"))
        for name, beyond in found.items()
        if beyond is not None
    ]


def write_times(kind: DataType) -> DataType:
    """The same type with texts for dates and times."""
    if isinstance(kind, StructType):
        fields = [StructField(f.name, write_times(f.dataType)) for f in kind.fields]
        return StructType(fields)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, write_times(kind.valueType))
    if isinstance(kind, ArrayType):
        return ArrayType(write_times(kind.elementType))
    return StringType() if holds_time(kind) else kind


def holds_time(kind: DataType) -> bool:
    """True for the types of dates and times."""
    return isinstance(kind, DateType | TimestampType | TimestampNTZType)


def _find_in_elements(array: Column, kind: DataType) -> list[Column] | None:
    if isinstance(kind, StructType):
        names = [(f.name, ArrayType(f.dataType)) for f in kind.fields]
        return _gather([find_doubts(array[name], of) for name, of in names])
    if isinstance(kind, ArrayType):
        flat = F.flatten(array)  # NULL where one of the arrays is
        rest = find_doubts(flat, kind)
        return None if rest is None else [array.isNotNull() & flat.isNull(), *rest]
    if isinstance(kind, StringType):
        return [F.array_join(array, " ").contains("Infinity")]
    if isinstance(kind, DoubleType | FloatType):
        infinite = [F.lit(sign * float("inf")).cast(kind) for sign in (1, -1)]
        return [F.array_contains(array, one) for one in infinite]
    return [] if _keeps_numbers(kind) else None


def _keeps_numbers(kind: DataType) -> bool:
    """True for a type that reads a number as it is written, or not at all: no date, whose seconds
    may wrap around."""
    return is_scalar(kind) and not holds_time(kind)


def _gather(found: list[list[Column] | None]) -> list[Column] | None:
    known = [conditions for conditions in found if conditions is not None]
    return None if len(known) < len(found) else [one for some in known for one in some]


def is_full(array: Column, kind: DataType) -> Column | None:
    """True for an array without NULLs; it may be false for one as well. None where there is no
    quick look.

    Args: kind: of the elements. The answer of `arrays_overlap` is NULL, and not false, where one of
    the arrays has a NULL.
    """
    rare = -7777 if isinstance(kind, NumericType) else _RARE.get(type(kind))
    if rare is None:
        return None
    rare_one = F.array(F.lit(rare).try_cast(kind))
    return F.coalesce(~F.arrays_overlap(array, rare_one), F.lit(False))
