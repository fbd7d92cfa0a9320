"""What became of the records of each of several inputs, counted in the pass over a batch."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from ..report import Counts
from ..spark.columns import DEFECT, FILTERED, INPUT, PARSED, REJECTED, STAGE

_STAGES = {"rejected": REJECTED, "filtered": FILTERED, "entered": PARSED}


def count_where(condition: Column) -> Column:
    """Rows of a condition. Not `count_if`, which adds a column a condition to every row."""
    return F.count(F.when(condition, F.lit(1)))


def measure_inputs(names: Sequence[str]) -> list[Column]:
    """Aggregates for `read_inputs`."""
    return [
        count_where((F.col(INPUT) == name) & is_fate).alias(f"{fate} of {name}")
        for name in names
        for fate, is_fate in _fates().items()
    ]


def read_inputs(names: Sequence[str], seen: Mapping[str, Any]) -> dict[str, Counts]:
    """The counts of each input's records."""
    told = {name: {fate: seen[f"{fate} of {name}"] for fate in _fates()} for name in names}
    return {name: Counts(read=sum(one.values()), **one) for name, one in told.items()}


def _fates() -> dict[str, Column]:
    sound = F.col(DEFECT).isNull()
    stages = {fate: (F.col(STAGE) == stage) & sound for fate, stage in _STAGES.items()}
    return {"malformed": ~sound, **stages}
