"""Schemas as Spark's DDL, and what a parser makes of a value its type cannot hold."""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from ...spark.columns import DEFECT, quote
from ...spec import Records

YEARS = "not within the years 1 to 9999"


def schema_ddl(columns: dict[str, str], *, corrupt: bool = False) -> str:
    """`a` bigint, `b` string [, `_defect` string]."""
    fields = [f"{quote(name)} {type_}" for name, type_ in columns.items()]
    return ", ".join(fields + ([f"{DEFECT} string"] if corrupt else []))


def beyond_range(
    source: Records, value: Callable[[str], Column], is_number: Callable[[str], Column]
) -> Column:
    """A defect where a number reads as Infinity though its text has digits (1e999 is no infinity,
    it does not fit), and outside the years 1 to 9999. Args: value: of a column.

    Spark's own range of years is 1 to 9999: beyond it, it computes, and the readers of its tables
    fail.
    """
    infinite = F.lit(float("inf"))
    found = [
        F.when(
            (F.abs(value(name)) == infinite) & is_number(name),
            F.lit(f"{name}: a number beyond the range of {type_}"),
        )
        for name, type_ in source.columns.items()
        if type_.strip().lower() in ("float", "double")
    ]
    found += [
        F.when(outside_years(value(name)), F.lit(f"{name}: {YEARS}"))
        for name, type_ in source.columns.items()
        if is_time(type_)
    ]
    return F.coalesce(*found) if found else F.lit(None).cast("string")


def is_time(type_: str) -> bool:
    """True for the types that hold a date."""
    return type_.strip().lower() in ("date", "timestamp", "timestamp_ntz")


def outside_years(time: Column) -> Column:
    """True for a date or time that is not within the years 1 to 9999."""
    return (time < F.lit("0001-01-01")) | (time >= F.lit("+10000-01-01"))
