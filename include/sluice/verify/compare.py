"""Compares tables as multisets."""

from pathlib import Path

from ..backlog import table_version
from ..launch import spark_settings
from ..spark.columns import LATE_BY
from ..spark.session import open_session
from ..spark.tables import frame_of
from ..spec import SYSTEM_COLUMNS, Pipeline

_OF_THE_RUN = {*SYSTEM_COLUMNS, LATE_BY}
"""Columns that say which run and which of several copies: they may differ."""


def compare_tables(pairs: list[tuple[str, str]], pipeline: Pipeline) -> list[str]:
    """One sentence for each pair (wanted, found) that does not hold the same rows the same number
    of times; a session is opened with the pipeline's settings."""
    differences = []
    with open_session(spark_settings(pipeline, 0, root=pairs[0][0])) as spark:
        for wanted, found in pairs:
            there = [table_version(path) is not None for path in (wanted, found)]
            if not all(there):
                differences += (
                    [f"{Path(wanted).name} exists in one of the two only"] if any(there) else []
                )
                continue
            left, right = (frame_of(spark, path) for path in (wanted, found))
            columns = [c for c in left.columns if c not in _OF_THE_RUN]
            left, right = left.select(*columns), right.select(*columns)
            missing, surplus = left.exceptAll(right).count(), right.exceptAll(left).count()
            if missing or surplus:
                differences.append(
                    f"{Path(wanted).name}: {missing} rows are missing and {surplus} too many"
                )
    return differences
