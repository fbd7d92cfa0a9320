"""Schemas as Spark's DDL, and what a parser makes of a number its type cannot hold."""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from ..spec import FileSource
from .columns import DEFECT, quote


def schema_ddl(columns: dict[str, str], *, corrupt: bool = False) -> str:
    """`a` bigint, `b` string [, `_defect` string]."""
    fields = [f"{quote(name)} {type_}" for name, type_ in columns.items()]
    return ", ".join(fields + ([f"{DEFECT} string"] if corrupt else []))


def beyond_range(source: FileSource, row: str, is_number: Callable[[str], Column]) -> Column:
    """A defect where a number reads as Infinity though its text has digits: 1e999 is no infinity, it does not fit. NULL elsewhere."""
    infinite = F.lit(float("inf"))
    found = [
        F.when((F.abs(F.col(f"{row}.{quote(name)}")) == infinite) & is_number(name), F.lit(f"{name}: a number beyond the range of {type_}"))
        for name, type_ in source.columns.items()
        if type_.strip().lower() in ("float", "double")
    ]
    return F.coalesce(*found) if found else F.lit(None).cast("string")
