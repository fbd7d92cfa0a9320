"""Computes the table of a step with `groups` once more, from the versions of its inputs that its
last commit tells, and compares."""

from collections.abc import Iterable, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from ..backlog import find_refresh, table_version
from ..errors import PreflightError
from ..quality.rules import compile_rules
from ..report import Verification
from ..sources import find_statics
from ..spark.columns import ENTERED, col
from ..spark.table_setup import locate_target
from ..spark.tables import frame_of
from ..spec import Pipeline, Step
from ..storage import Paths
from .classify import judge, mark_time
from .commits import with_origin
from .comparing import count_differences
from .refresh import Refresh
from .survey import is_good
from .transform import business_columns

_PARTS = 1_000_000


def verify_groups(
    spark: SparkSession, pipeline: Pipeline, step: Step, paths: Paths, share: float = 1.0
) -> Verification:
    """What a step's table should hold against what it holds, as multisets of rows.

    Args: share: of the groups, chosen by a hash of them. Raises PreflightError where its table
    does not tell what it was computed from.
    """
    statics = find_statics(pipeline, step, paths, asks=False)
    refresh = Refresh.of(spark, pipeline, step, paths, statics)
    path = locate_target(spark, step, paths)
    told = _read_note(path, paths.home(step.name), refresh)
    version, versions = table_version(path), told["versions"]
    wanted = _compute_good(refresh, spark, versions, share)
    held = frame_of(spark, path, version).where(_is_sampled(map(col, step.groups), share))
    held = held.select(*map(col, wanted.columns))
    differing = count_differences(wanted, held, [*step.groups], pipeline.pii)
    return Verification(
        step=step.name, versions=versions, version=version or 0, share=share, **vars(differing)
    )


def _read_note(path: str, home: str, refresh: Refresh) -> dict:
    """What the table's last commit of the step tells. Raises PreflightError where none does, and
    where another query computed it."""
    found = find_refresh(path, home)
    again = f"`sluice reset NAME --step {refresh.step.name}`, then `sluice run NAME`"
    if found is None:
        raise PreflightError(
            "no commit of the table tells what it was computed from: it was never filled, or its "
            "log was cleaned",
            where=path,
            do=f"Run the pipeline. Where it had run: {again} computes all of it and compares",
        )
    if found[1]["query"] != refresh.query:
        raise PreflightError(
            "the query, its rules or Spark's settings were edited since the table was computed, so "
            "it cannot be told by them whether it is right",
            where=refresh.where,
            do="The next run computes all of it; of Spark's settings one that finds something new",
        )
    return found[1]


def _compute_good(
    refresh: Refresh, spark: SparkSession, versions: Mapping[str, int], share: float
) -> DataFrame:
    """The rows that the query makes and the step's rules do not refuse."""
    inputs = refresh.read(spark, versions)
    for name in refresh.grouped if share < 1 else ():
        groups = [*map(F.expr, refresh.computed(name).values())]
        kinds = [one.dataType for one in inputs[name].select(*groups).schema]
        if not any(isinstance(kind, ArrayType) for kind in kinds):  # a list has several groups
            inputs[name] = inputs[name].where(_is_sampled(groups, share))
    rows = with_origin(refresh.compute(inputs), ENTERED)
    columns, step = business_columns(rows), refresh.step
    rules, _ = compile_rules(step.rules, {f.name: f.dataType for f in columns.fields})
    judged = judge(mark_time(rows, step, columns), step, columns, rules)
    good = judged.where(is_good()).select(*map(col, columns.names))
    return good.where(_is_sampled(map(col, step.groups), share))


def _is_sampled(groups: Iterable[Column], share: float) -> Column:
    if share >= 1:
        return F.lit(True)
    return F.pmod(F.xxhash64(*groups), F.lit(_PARTS)) < F.lit(round(share * _PARTS))
