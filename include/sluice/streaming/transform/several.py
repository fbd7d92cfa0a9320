"""A transform over several named views: streams, and tables that are read as a whole."""

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...errors import SpecError
from ...spark.columns import ENTERED, STAGE
from ...spark.joins import keep_nulls_apart
from ...spark.plans import analyzed_plan, frame_of_plan, items, walk
from .branch import is_origin
from .names import CARRIED, check_names
from .origin import bare, carry, is_shown, mark, trace, view_of
from .user import call_function, load_function, read_sql, run_sql


@dataclass(frozen=True)
class View:
    """What a transform sees by one name. `alone`: the only stream, so that each row that is made
    has one origin. `static`: a table."""

    rows: DataFrame
    alone: bool
    static: bool = False

    def show(self, mentions: str) -> DataFrame:
        """Its rows; the engine's columns where a text mentions them."""
        return self.rows if self.static else view_of(mark(self.rows), mentions)


def apply_to_views(views: dict[str, View], folder: Path, reference: str) -> DataFrame:
    """The rows that a transform makes, with `_raw`, `_defect`, `_rescued`, `_source` (NULL where a
    row is made of several streams) and `_stage`.

    Raises SpecError with the sentence of Spark or of the user's code, for columns that bear an
    engine's name, and for a stream that is not read.
    """
    where = str(folder / reference)
    if reference.endswith(".sql"):
        sql = read_sql(folder, reference)
        shown = {name: view.show(sql) for name, view in views.items()}
        result = run_sql(shown, sql, where)
    else:
        shown = {name: view.show("") for name, view in views.items()}
        result = call_function(load_function(folder, reference), shown, where)
    plan = keep_nulls_apart(result.sparkSession, analyzed_plan(result))
    streams = {name: shown[name] for name, view in views.items() if not view.static}
    _check_read(plan, streams, where)
    spark = result.sparkSession
    output = [a for a in items(plan.output()) if not is_shown(a) and not is_origin(a)]
    check_names([attribute.name() for attribute in output], where)
    carried = carry(spark, plan) if any(view.alone for view in views.values()) else None
    rows = frame_of_plan(spark, plan if carried is None else carried)
    origin = {name: F.lit(None).cast("string") for name in CARRIED}
    if carried is not None:
        origin = trace(plan)
    return rows.select(
        *[bare(spark, attribute) for attribute in output],
        *[column.alias(name) for name, column in origin.items()],
        F.lit(ENTERED).alias(STAGE),
    )


def _check_read(plan: object, streams: dict[str, DataFrame], where: str) -> None:
    """Raise SpecError for a stream that a query does not read: its records would count as entered,
    and nothing would ever be made of them."""
    read = [node for node in walk(plan) if not items(node.children())]
    for name, rows in streams.items():
        leaf = next(n for n in walk(analyzed_plan(rows)) if not items(n.children()))
        if not any(node.sameResult(leaf) for node in read):
            raise SpecError(
                f"the transform does not read input {name}",
                where=where,
                value=", ".join(streams),
                do="Write it into the query, or take it out of `inputs`",
            )
