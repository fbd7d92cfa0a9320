"""The user's SQL or Python between parse and rules, without losing sight of a row.

A plain `SELECT ... [WHERE ...] FROM source` becomes columns of the one frame: a row the WHERE leaves out stays, marked `filtered`.
Anything else (joins, explode, aggregation, Python) may change the number of rows: it runs on a branch of its own, beside the parsed rows that are
counted and the malformed ones; it must carry the struct `_row` through, which holds where a row came from.
"""

from collections.abc import Callable
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..errors import SpecError
from ..spark.columns import DEFECT, ENTERED, FILTERED, PARSED, RAW, RESCUED, SOURCE, STAGE, col
from ..spark.failure import sql_message
from ..spec.user_code import load_code

_CARRIED = (RAW, DEFECT, RESCUED, SOURCE)
ROW = "_row"


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
    return path.read_text(encoding="utf-8").strip().rstrip(";")


def _simple_select(spark: SparkSession, sql: str) -> tuple[list, object | None] | None:
    """The projection and the WHERE of `SELECT ... FROM source [WHERE ...]`, as Catalyst expressions; None for any other statement."""
    plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    if plan.getClass().getSimpleName() != "Project":
        return None
    child, condition = plan.child(), None
    if child.getClass().getSimpleName() == "Filter":
        child, condition = child.child(), child.condition()
    if child.getClass().getSimpleName() != "UnresolvedRelation" or child.name().lower() != "source":
        return None
    items = plan.projectList()
    return [items.apply(i) for i in range(items.size())], condition


def _needs_own_branch(expressions: list) -> bool:
    """True when an expression makes rows (explode), looks at other rows (windows, aggregates) or holds a query of its own."""
    words = (
        "explode",
        "inline",
        "stack(",
        "posexplode",
        " over ",
        "windowspec",
        "scalar-subquery",
        "json_tuple",
        "sum(",
        "count(",
        "avg(",
        "min(",
        "max(",
    )
    return any(word in str(e.toString()).lower() for e in expressions for word in words)


def apply_sql(frame: DataFrame, sql: str, where: str) -> DataFrame:
    """Run the user's SQL over the parsed rows. Raises SpecError with Spark's sentence when the SQL is wrong."""
    spark = frame.sparkSession
    business = [c for c in frame.columns if c not in _CARRIED]
    try:
        simple = _simple_select(spark, sql)
        if simple is None or _needs_own_branch(
            simple[0] + ([simple[1]] if simple[1] is not None else [])
        ):
            return _apply_on_branch(frame, lambda view: _run_sql(view, sql), where)
        to_column = spark._jvm.org.apache.spark.sql.classic.ExpressionUtils.column
        projected: list[Column] = []
        for expression in simple[0]:
            star = expression.getClass().getSimpleName() == "UnresolvedStar"
            projected += [col(c) for c in business] if star else [Column(to_column(expression))]
        kept = (
            F.coalesce(Column(to_column(simple[1])), F.lit(False))
            if simple[1] is not None
            else F.lit(True)
        )
        stage = F.when(F.col(DEFECT).isNotNull() | kept, F.lit(ENTERED)).otherwise(F.lit(FILTERED))
        return frame.select(*projected, *_CARRIED, stage.alias(STAGE))
    except PySparkException as error:
        raise SpecError(
            f"the SQL cannot run: {sql_message(error)}",
            where=where,
            do="`sluice validate --spark` checks it without data",
        ) from None


def _run_sql(view: DataFrame, sql: str) -> DataFrame:
    view.createOrReplaceTempView("source")
    return view.sparkSession.sql(sql)


def _apply_on_branch(
    frame: DataFrame, function: Callable[[DataFrame], DataFrame], where: str
) -> DataFrame:
    """Transformed rows beside the rows that entered the transform (for the count) and the malformed ones (for the quarantine)."""
    sound = frame.where(F.col(DEFECT).isNull())
    business = [col(c) for c in frame.columns if c not in _CARRIED]
    result = function(sound.select(*business, F.struct(*_CARRIED).alias(ROW)))
    if ROW not in result.columns:
        raise SpecError(
            f"the transform drops the column {ROW}, so its rows could not be traced to where they came from",
            where=where,
            do=f"Select {ROW} as well (a query that explodes or joins), or group by it",
        )
    entered = result.select(
        *[col(c) for c in result.columns if c != ROW],
        *[F.col(f"{ROW}.{c}").alias(c) for c in _CARRIED],
        F.lit(ENTERED).alias(STAGE),
    )
    stage = F.when(F.col(DEFECT).isNull(), F.lit(PARSED)).otherwise(F.lit(ENTERED))
    counted = frame.select(*_CARRIED, stage.alias(STAGE))
    return entered.unionByName(counted, allowMissingColumns=True)


def apply_transform(frame: DataFrame, folder: Path, reference: str | None) -> DataFrame:
    """Parsed rows in; the transform's columns, `_raw`, `_defect`, `_rescued`, `_source` and `_stage` out."""
    if reference is None:
        return frame.withColumn(STAGE, F.lit(ENTERED))
    where = str(folder / reference)
    if reference.endswith(".sql"):
        return apply_sql(frame, read_sql(folder, reference), where)
    function = load_function(folder, reference)

    def call(view: DataFrame) -> DataFrame:
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

    return _apply_on_branch(frame, call, where)


def business_columns(frame: DataFrame) -> StructType:
    """The user's columns of a transformed frame."""
    return StructType([f for f in frame.schema.fields if f.name not in (*_CARRIED, STAGE)])
