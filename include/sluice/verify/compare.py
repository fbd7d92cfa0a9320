"""Compares tables as multisets."""

from pathlib import Path

from ..backlog import table_version
from ..launch import spark_settings
from ..spark.session import open_session
from ..spark.tables import frame_of
from ..spec import Pipeline


def compare_tables(pairs: list[tuple[str, str]], pipeline: Pipeline) -> list[str]:
    """One sentence for each pair (wanted, found) that does not hold the same rows the same number
    of times; a session is opened with the pipeline's settings."""
    from ..streaming.comparing import differ

    differences = []
    with open_session(spark_settings(pipeline, 0, root=pairs[0][0])) as spark:
        for wanted, found in pairs:
            there = [table_version(path) is not None for path in (wanted, found)]
            if not all(there):
                differences += (
                    [f"{Path(wanted).name} exists in one of the two only"] if any(there) else []
                )
                continue
            differing = differ(frame_of(spark, wanted), frame_of(spark, found))
            if differing.missing or differing.surplus:
                differences.append(
                    f"{Path(wanted).name}: {differing.missing} rows are missing and "
                    f"{differing.surplus} too many"
                )
    return differences
