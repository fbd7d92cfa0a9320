"""Finds and calls what the user wrote: the text of a SQL file, a Python function."""

import re
from collections.abc import Callable
from inspect import signature
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ...errors import SpecError
from ...spark.fault import sql_message
from ...spark.plans import is_query
from ...spec.user_code import load_code

_PLACE = re.compile(r"\bline (\d+),? pos (\d+)")
"""Where Spark says that SQL is wrong: a line from 1, a place in it from 0."""
_WITHOUT_SUBQUERY = (
    "Write a join of the two: LEFT SEMI JOIN for EXISTS and IN, LEFT JOIN ... WHERE c.id IS NULL "
    "for NOT EXISTS, with a condition on both event times"
)


def _check_parameters(
    function: Callable[..., DataFrame], named: dict[str, DataFrame], where: str
) -> None:
    """Raise SpecError for a function that does not take each of several inputs by its name."""
    try:
        signature(function).bind(**named) if named else None
    except TypeError as error:
        raise SpecError(
            f"the function takes other parameters than the step has inputs: {error}",
            where=where,
            value=str(signature(function)),
            do=f"Write def {getattr(function, '__name__', 'f')}({', '.join(named)})",
        ) from None


def load_function(folder: Path, reference: str) -> Callable[..., DataFrame]:
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


def run_sql(views: dict[str, DataFrame], sql: str, where: str) -> DataFrame:
    """The SQL over rows, each by the name that it calls them.

    Raises SpecError with Spark's sentence when the SQL is wrong.
    """
    spark = next(iter(views.values())).sparkSession
    try:
        if not is_query(spark, sql):
            raise SpecError(
                "the SQL is no query, and a transform only reads",
                where=where,
                do=f"Write a SELECT over {', '.join(views)}",
            )
        for name, view in views.items():
            view.createOrReplaceTempView(name)
        try:
            return spark.sql(sql)
        finally:
            for name in views:
                spark.catalog.dropTempView(name)
    except PySparkException as error:
        raise SpecError(
            f"the SQL cannot run: {sql_message(error)}{_place_of(str(error))}",
            where=where,
            do=_WITHOUT_SUBQUERY
            if "SUBQUERY_EXPRESSION.STREAMING_QUERY" in str(error)
            else "`sluice validate --spark` checks it without data",
        ) from None


def _place_of(said: str) -> str:
    """`, line 2, column 8` for an error that says where the SQL is wrong."""
    found = _PLACE.search(said)
    return f", line {found[1]}, column {int(found[2]) + 1}" if found else ""


def call_function(
    function: Callable[..., DataFrame], views: dict[str, DataFrame], where: str
) -> DataFrame:
    """What the function makes of the rows: of one view whatever its parameter is called, of several
    each by the parameter of its name.

    Raises SpecError when it raises, for other parameters, and for anything but a frame.
    """
    named = {} if len(views) == 1 else views
    _check_parameters(function, named, where)
    try:
        result = function(**named) if named else function(*views.values())
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
