"""Finds and calls what the user wrote: the text of a SQL file, a Python function."""

import re
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ...errors import SpecError
from ...spark.fault import sql_message
from ...spark.plans import is_query
from ...spec.user_code import load_code

_VIEW = "source"
_PLACE = re.compile(r"\bline (\d+),? pos (\d+)")
"""Where Spark says that SQL is wrong: a line from 1, a place in it from 0."""


def load_function(folder: Path, reference: str) -> Callable[[DataFrame], DataFrame]:
    """`file.py:function` -> the function. Raises SpecError when either does not exist."""
    return load_code(folder, reference, f"transform {reference}")


def read_sql(folder: Path, reference: str) -> str:
    """The text of a SQL file. Raises SpecError when it does not exist."""
    path = folder / reference
    if not path.is_file():
        raise SpecError(
            "no such file",
            where=f"transform {reference}",
            value=str(path),
            do="The path is relative to the pipeline's YAML",
        )
    return path.read_text(encoding="utf-8").rstrip().rstrip(";")


def run_sql(view: DataFrame, sql: str, where: str) -> DataFrame:
    """The SQL over rows that it calls `source`.

    Raises SpecError with Spark's sentence when the SQL is wrong.
    """
    spark = view.sparkSession
    try:
        if not is_query(spark, sql):
            raise SpecError(
                "the SQL is no query, and a transform only reads",
                where=where,
                do="Write SELECT ... FROM source",
            )
        view.createOrReplaceTempView(_VIEW)
        try:
            return spark.sql(sql)
        finally:
            spark.catalog.dropTempView(_VIEW)
    except PySparkException as error:
        raise SpecError(
            f"the SQL cannot run: {sql_message(error)}{_place_of(str(error))}",
            where=where,
            do="`sluice validate --spark` checks it without data",
        ) from None


def _place_of(said: str) -> str:
    """`, line 2, column 8` for an error that says where the SQL is wrong."""
    found = _PLACE.search(said)
    return f", line {found[1]}, column {int(found[2]) + 1}" if found else ""


def call_function(
    function: Callable[[DataFrame], DataFrame], view: DataFrame, where: str
) -> DataFrame:
    """What the function makes of the rows.

    Raises SpecError when it raises, and for anything but a frame.
    """
    try:
        result = function(view)
    except Exception as error:  # the user's code may raise anything
        raise SpecError(
            f"the transform raised {type(error).__name__}: {sql_message(error)}",
            where=where,
            do="Call it on a small frame in a test",
        ) from error
    if not isinstance(result, DataFrame):
        raise SpecError(
            "the transform must return a DataFrame", where=where, value=type(result).__name__
        )
    return result
