"""The user's SQL or Python between parse and rules, without losing sight of a row.

What a transform does is read from its analyzed plan. Where it only computes columns and leaves rows
out (`SELECT ... WHERE ...`, `rows.where(...)`), it becomes columns of the one frame: a row that it
leaves out stays, marked `filtered`. Anything else may change the number of rows and runs on a
branch of its own, beside the records it was given, which are counted.
"""

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ...errors import SpecError
from ...spark.columns import ENGINE_COLUMNS, ENTERED, STAGE
from ...spark.custom_state import find_custom_state
from ...spark.joins import keep_nulls_apart
from ...spark.plans import analyzed_plan
from ...spec import ONLY
from .branch import run_on_branch
from .every_row import find_chain, keep_every_row
from .names import CARRIED, check_names
from .origin import ROW, mark, view_of
from .several import View, apply_to_views
from .tables import query_tables
from .user import call_function, load_function, read_sql, run_sql

__all__ = ["View", "apply_to_views", "apply_transform", "business_columns", "query_tables"]


def apply_transform(
    frame: DataFrame, folder: Path, reference: str | None, row_by_row: str = ""
) -> DataFrame:
    """The transform's columns, and `_raw`, `_defect`, `_rescued`, `_source` and `_stage`.

    Args:
        frame: the source's columns, and `_raw`, `_defect`, `_rescued`, `_source`.
        folder: of the pipeline's YAML.
        reference: a `.sql` file or `file.py:function`; None leaves the rows as they are.
        row_by_row: an input, for errors, whose rows may be selected and filtered alone.

    Raises SpecError with the sentence of Spark or of the user's code, and for columns that bear an
    engine's name.
    """
    if reference is None:
        check_names([name for name in frame.columns if name not in CARRIED], "source")
        return frame.withColumn(STAGE, F.lit(ENTERED))
    where, marked = str(folder / reference), mark(frame)
    if reference.endswith(".sql"):
        sql = read_sql(folder, reference)
        result = run_sql({ONLY: view_of(marked, sql)}, sql, where)
    else:
        result = _call(folder, reference, marked, where)
    plan = keep_nulls_apart(frame.sparkSession, analyzed_plan(result))
    chain = find_chain(plan, frame.sparkSession)
    if chain is not None:
        return keep_every_row(frame.sparkSession, chain, where)
    if row_by_row:
        raise SpecError(
            "the transform of an input selects and filters its rows, one by one, and this one does "
            "more",
            where=row_by_row,
            value=reference,
            do="Write what gathers, joins or unfolds rows into the step's transform",
        )
    return run_on_branch(frame, plan, where)


def _call(folder: Path, reference: str, marked: DataFrame, where: str) -> DataFrame:
    """What a Python function makes of the rows. A state of the user's own gets every column of
    them in every row: where nobody names the origin, it is not among them."""
    function = load_function(folder, reference)
    result = call_function(function, {ONLY: view_of(marked, ROW)}, where)
    if not find_custom_state(result):
        return result
    code = (folder / reference.partition(":")[0]).read_text(encoding="utf-8")
    return result if ROW in code else call_function(function, {ONLY: view_of(marked, "")}, where)


def business_columns(frame: DataFrame) -> StructType:
    """The user's columns of a transformed frame."""
    return StructType([f for f in frame.schema.fields if f.name not in ENGINE_COLUMNS])
