"""The `row_condition` of a rule: which rows it looks at."""

from collections.abc import Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from .literals import Arguments, HandToGX


def row_condition(args: Arguments) -> Column | None:
    """Spark SQL that picks the rows a rule looks at.

    Conditions in Great Expectations' own language stay with it.
    """
    text, parser = args.kwargs.get("row_condition"), args.kwargs.get("condition_parser")
    if text is None:
        return None
    if not isinstance(text, str) or parser not in (None, "spark"):
        raise HandToGX("its row_condition is not Spark SQL")
    try:
        return F.coalesce(F.expr(text), F.lit(False))
    except ParseException as error:
        raise args.refuse(
            f"row_condition is not Spark SQL: {error.getMessage().splitlines()[0]}",
            text,
            "Write a condition such as: country = 'DE'",
        ) from None


def check_condition(rule: Sequence[Column], args: Arguments, fields: dict[str, DataType]) -> None:
    """Raise SpecError when Spark cannot resolve a rule over these fields; no job runs."""
    frame = (
        SparkSession.active()
        .range(0)
        .select(*(F.lit(None).cast(type_).alias(name) for name, type_ in fields.items()))
    )
    try:
        frame.select(*rule)
    except AnalysisException as error:
        raise args.refuse(
            f"row_condition does not fit the columns: {error.getMessage().splitlines()[0]}",
            args.kwargs["row_condition"],
            f"There are: {', '.join(fields)}",
        ) from None
