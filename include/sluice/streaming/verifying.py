"""Computes the table of a step with `groups` once more, from the versions of its inputs that its
last commit tells, and compares."""

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import table_version
from ..backlog.delta import find_commit_info
from ..errors import PreflightError, SpecError
from ..quality.rules import compile_rules
from ..report import Difference, Verification
from ..spark.columns import ENTERED, col
from ..spark.kept import keep_rows
from ..spark.table_setup import locate_target
from ..spark.tables import frame_of
from ..spec import Pipeline, Step
from ..storage import Paths
from .classify import judge, mark_time
from .refresh import Refresh, with_origin
from .survey import is_good
from .transform import business_columns

_PARTS = 1_000_000
_SHOWN = 10
"""Groups that are named, of those that differ."""
_SIDE, _WANTED, _HELD, _OFF = "_side", "_wanted", "_held", "_off"


def verify_step(
    spark: SparkSession, pipeline: Pipeline, step: Step, paths: Paths, share: float = 1.0
) -> Verification:
    """What a step's table should hold against what it holds, as multisets of rows.

    Args: share: of the groups, chosen by a hash of them. Raises SpecError for a step without
    `groups`, PreflightError where its table does not tell what it was computed from.
    """
    if not step.groups:
        raise SpecError(
            "only the table of a step with `groups` tells the versions that it follows from",
            where=f"{pipeline.name}.{step.name}",
            do="`sluice torture` compares the tables of any step with those of undisturbed runs",
        )
    path, refresh = locate_target(spark, step, paths), Refresh.of(spark, pipeline, step, paths)
    told = _read_note(path, f"sluice/{paths.home(step.name)}/", refresh)
    version, versions = table_version(path), told["versions"]
    wanted = _compute_good(refresh, spark, versions, share)
    columns = [col(name) for name in wanted.columns]
    held = frame_of(spark, path, version).where(_is_sampled(map(col, step.groups), share))
    both = wanted.withColumn(_SIDE, F.lit(1)).unionByName(
        held.select(*columns).withColumn(_SIDE, F.lit(-1))
    )
    shown = [name for name in step.groups if name not in pipeline.pii]
    rows, differing = _compare(both, [*step.groups], shown)
    return Verification(
        step=step.name,
        versions=versions,
        version=version or 0,
        share=share,
        rows=rows,
        missing=sum(one.missing for one in differing),
        surplus=sum(one.surplus for one in differing),
        groups=len(differing),
        samples=differing[:_SHOWN],
    )


def _read_note(path: str, home: str, refresh: Refresh) -> dict:
    """What the table's last commit of the step tells. Raises PreflightError where none does, and
    where another query computed it."""
    mark = (home, "versions")
    found = find_commit_info(
        path, lambda told: str(told.get("sluice", "")).startswith(mark[0]) and mark[1] in told
    )
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
            do=f"The next run that finds something new computes all of it; at once {again}",
        )
    return found[1]


def _compute_good(
    refresh: Refresh, spark: SparkSession, versions: Mapping[str, int], share: float
) -> DataFrame:
    """The rows that the query makes and the step's rules do not refuse."""
    inputs = refresh.read(spark, versions)
    for name in refresh.tables:
        groups = map(F.expr, refresh.named(name).values())
        inputs[name] = inputs[name].where(_is_sampled(groups, share))
    rows = with_origin(refresh.compute(inputs), ENTERED)
    columns, step = business_columns(rows), refresh.step
    rules, _ = compile_rules(step.rules, {f.name: f.dataType for f in columns.fields})
    judged = judge(mark_time(rows, step, columns), step, columns, rules)
    return judged.where(is_good()).select(*map(col, columns.names))


def _is_sampled(groups: Sequence[Column] | map, share: float) -> Column:
    if share >= 1:
        return F.lit(True)
    return F.pmod(F.xxhash64(*groups), F.lit(_PARTS)) < F.lit(round(share * _PARTS))


def _compare(both: DataFrame, groups: list[str], shown: list[str]) -> tuple[int, list[Difference]]:
    """How many rows there should be, and the groups of which rows are missing or too many. Args:
    shown: the columns whose values may be."""
    columns = [col(name) for name in both.columns if name != _SIDE]
    by_row = both.groupBy(*columns).agg(
        F.sum(_SIDE).alias(_OFF), F.count_if(F.col(_SIDE) > 0).alias(_WANTED)
    )
    missing = F.sum(F.greatest(F.col(_OFF), F.lit(0))).alias("missing")
    surplus = F.sum(F.greatest(-F.col(_OFF), F.lit(0))).alias("surplus")
    named = [col(name) for name in groups]
    by_group = by_row.groupBy(*named).agg(F.sum(_WANTED).alias(_WANTED), missing, surplus)
    with keep_rows(by_group) as kept:
        rows = kept.agg(F.coalesce(F.sum(_WANTED), F.lit(0))).collect()[0][0]
        off = kept.where("missing > 0 OR surplus > 0").orderBy(*named).collect()
    differences = [
        Difference(
            group=", ".join(f"{name}={row[name]}" for name in shown),
            missing=row["missing"],
            surplus=row["surplus"],
        )
        for row in off
    ]
    return rows, differences
