"""A transform as a query over tables: the same code, without a stream."""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame

from .names import check_names
from .user import call_function, load_function, read_sql, run_sql


def query_tables(tables: Mapping[str, DataFrame], folder: Path, reference: str) -> DataFrame:
    """What a transform makes of tables, each by its name.

    Args: folder: of the pipeline's YAML. reference: a `.sql` file or `file.py:function`. Raises
    SpecError with the sentence of Spark or of the user's code, and for columns that bear an
    engine's name.
    """
    where = str(folder / reference)
    if reference.endswith(".sql"):
        result = run_sql(dict(tables), read_sql(folder, reference), where)
    else:
        result = call_function(load_function(folder, reference), dict(tables), where)
    check_names(result.columns, where)
    return result
