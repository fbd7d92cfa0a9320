"""The groups of a step that a person wants computed again: those that lie in a range of time."""

from collections.abc import Collection, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from ..errors import SpecError
from ..spark.columns import col
from ..spark.lists import explode_groups
from ..spec import Window

_TIMES = (DateType, TimestampType, TimestampNTZType)


def choose_time(groups: Collection[str], columns: StructType, where: str) -> str:
    """The group that says when a row of the result is. Raises SpecError where none is a time."""
    kinds = {field.name.lower(): field.dataType for field in columns.fields}
    times = [name for name in groups if isinstance(kinds[name.lower()], _TIMES)]
    if not times:
        raise SpecError(
            "no group of the step is a date or a time, so a range of time chooses none of them",
            where=where,
            value=", ".join(groups),
            do="`sluice reset NAME --step STEP` has all of them computed by the next run",
        )
    return times[0]


def find_groups(
    listed: Mapping[str, Mapping[str, str]],
    inputs: Mapping[str, DataFrame],
    held: DataFrame,
    wanted: Column,
) -> DataFrame:
    """The groups that the inputs or the table have, of which something holds: one or several rows
    each. Args: listed: by input, how each group follows from a row of it, or a list of it does.
    held: rows of the table."""
    groups = [*next(iter(listed.values()))]
    found = [held.select(*map(col, groups))]
    for name, said in listed.items():
        told = inputs[name].select(*(F.expr(said[one]).alias(one) for one in groups))
        mine, its = dict(told.dtypes), dict(found[0].dtypes)
        lists = [one for one in groups if mine[one] != its[one]]
        found.append(explode_groups(told, lists))
    return reduce(DataFrame.union, found).where(wanted)


def lies_in(group: str, length: str, window: Window) -> Column:
    """Whether a group that begins at a time has a part in a range. Args: length: how long it is, as
    SQL's INTERVAL has it; empty where nobody knows, so that its begin decides."""
    start, end = map(F.expr, window.literals)
    begins = col(group).cast("timestamp")
    if not length:
        return (begins >= start) & (begins < end)
    return (begins < end) & (begins + F.expr(f"INTERVAL {length}") > start)
