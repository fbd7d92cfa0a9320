"""The groups of a step that a person wants computed again: those that lie in a range of time."""

from collections.abc import Collection, Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructType, TimestampNTZType, TimestampType

from ..errors import SpecError
from ..spark.columns import col
from ..spark.lists import explode_groups
from ..spark.pruning import length_of
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
    named: Mapping[str, Mapping[str, str]],
    inputs: Mapping[str, DataFrame],
    held: DataFrame,
    window: Window,
    several: Collection[str],
) -> DataFrame:
    """The groups that the inputs or the table have in a range, one or several rows each: those of
    which a part lies in it, as far as it is known how long they are.

    Args: named: by input, how each group follows from a row of it. held: rows of the table.
    several: groups that an input says a list of.
    """
    groups = [*next(iter(named.values()))]
    time = choose_time(groups, held.schema, "")
    found = [held.select(*map(col, groups))]
    for name, said in named.items():
        told = inputs[name].select(*(F.expr(said[one]).alias(one) for one in groups))
        found.append(explode_groups(told, several))
    length = next(filter(None, (length_of(said[time]) for said in named.values())), "")
    return reduce(DataFrame.union, found).where(_lies_in(col(time), length, window))


def _lies_in(group: Column, length: str, window: Window) -> Column:
    """Whether a group that begins at a time has a part in a range."""
    start, end = map(F.expr, window.literals)
    begins = group.cast("timestamp")
    if not length:
        return (begins >= start) & (begins < end)
    return (begins < end) & (begins + F.expr(f"INTERVAL {length}") > start)
