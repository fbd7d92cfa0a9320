"""The commits of a step's inputs as records that say what changed, and which groups they touch."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..backlog import find_foreign
from ..checkpoint import Checkpoint, noted_parts, plan_nothing
from ..errors import PreflightError
from ..sources import Inputs
from ..spark.columns import (
    CHANGE,
    DEFECT,
    PARSED,
    RAW,
    RESCUED,
    SOURCE,
    STAGE,
)
from ..spark.groups import check_groups_kept, mark_input
from ..spark.kept import keep_rows
from ..spark.lists import explode_groups
from ..spark.pruning import Spans
from ..spark.table_setup import locate_target
from ..spark.tables import FEW_ROWS
from ..spec import Step
from ..spec.definition import changed_parts, digest_parts
from .redo import choose_time
from .refresh import Refresh
from .regroup import only_groups
from .run import Run

_KEY = "_key {}"
"""A part of a key, while rows that have it are looked up: no table has such a column."""


def open_commits(run: Run, step: Step, inputs: Inputs) -> tuple[DataFrame, Refresh]:
    """The stream of an input's new rows, each with its group and with empty columns of the result;
    and how the table is computed.

    Raises SpecError for a query that cannot be computed group by group.
    """
    streams = inputs.open(run.spark)
    refresh = Refresh.of(run.spark, run.pipeline, step, run.paths, inputs.statics)
    frames = refresh.read(run.spark, {})
    marked = {name: mark_input(frames[name], name) for name in refresh.tables}
    result = refresh.compute({**frames, **marked})
    lists = check_groups_kept(result, marked, refresh.groups, refresh.where, refresh.through)
    refresh = replace(refresh, lists=lists)
    redo = run.mode.redo
    if redo is not None:
        refresh = replace(refresh, redo=redo.window)
        choose_time(refresh.groups, result.schema, refresh.where)
    _plan_asked(run, step)  # only now: what is refused leaves no batch behind
    records = (as_records(refresh, name, streams[name], result.schema) for name in refresh.tables)
    return reduce(union_records, records), refresh


def _plan_asked(run: Run, step: Step) -> None:
    """Plan a batch where a person asked for one, edited the step since a report told of it, or
    wrote to its table, so that it is computed also where nothing is new in the inputs. Raises
    PreflightError where there is nothing yet that could be computed again."""
    place, asked = run.checkpoint(step), run.mode.redo is not None
    checkpoint = Checkpoint.below(place)
    if checkpoint.newest_commit is None and asked:
        raise PreflightError(
            "no batch of the step is finished, so there is nothing to compute again",
            where=run.where(step),
            do="Run the pipeline: it computes all of it",
        )
    if checkpoint.newest_commit is None or checkpoint.open_batch is not None:
        return
    edited = changed_parts(noted_parts(place), digest_parts(step, run.pipeline.folder))
    path = locate_target(run.spark, step, run.paths)
    if asked or edited or find_foreign(path, run.paths.home(step.name)):
        run.rights.check(step.name)
        plan_nothing(place)


def as_records(refresh: Refresh, name: str, rows: DataFrame, columns: StructType) -> DataFrame:
    """Rows of an input as records: of which input they are, and of which group or, of an input that
    belongs to groups through others, of which key; and the columns of the result, empty."""
    if name in refresh.through:
        keys = enumerate(refresh.through[name].key)
        key = F.struct(*(F.expr(text).alias(_KEY.format(place)) for place, text in keys))
        belongs = F.struct(key.alias(name)).alias("key")
    else:
        said = [F.expr(text).alias(column) for column, text in refresh.listed(name).items()]
        belongs = F.struct(*said).alias("group")
    change = F.struct(F.lit(name).alias("input"), belongs)
    nothing = [F.lit(None).cast(f.dataType).alias(f.name) for f in columns.fields]
    return with_origin(rows.select(change.alias(CHANGE), *nothing), PARSED)


def with_origin(rows: DataFrame, stage: str) -> DataFrame:
    """Rows with the engine's columns: none of them comes from one record."""
    nothing = F.lit(None).cast("string")
    kept = dict.fromkeys((RAW, DEFECT, RESCUED, SOURCE), nothing)
    return rows.withColumns({**kept, STAGE: F.lit(stage)})


def union_records(some: DataFrame, others: DataFrame) -> DataFrame:
    """Records of two inputs, of which one may tell a group and the other a key."""
    return some.unionByName(others, allowMissingColumns=True)


def find_touched(
    kept: ExitStack, refresh: Refresh, records: DataFrame, inputs: Mapping[str, DataFrame]
) -> DataFrame:
    """The groups that records belong to, one or several rows each.

    Args: inputs: as they are computed from. A row that was joined to a key before, and is not any
    more, has a record of its own, which says its groups.
    """
    if not refresh.through:
        return explode_groups(records.select(f"{CHANGE}.group.*"), refresh.several)
    own = records.where(F.col(CHANGE)["input"].isin(refresh.grouped))
    found = [own.select(f"{CHANGE}.group.*")]
    for name in refresh.through:
        of_input = records.where(F.col(CHANGE)["input"] == name)
        keys = kept.enter_context(keep_rows(of_input.select(f"{CHANGE}.key.{name}.*").distinct()))
        spans = Spans.of(keys)
        if spans.count:
            found += _look_up(refresh, name, keys, spans, inputs)
    return explode_groups(reduce(DataFrame.union, found), refresh.several)


def _look_up(
    refresh: Refresh,
    name: str,
    keys: DataFrame,
    spans: Spans,
    inputs: Mapping[str, DataFrame],
) -> Iterator[DataFrame]:
    """The groups of the rows that are joined to those of an input with some keys."""
    for other, texts in refresh.through[name].others.items():
        rows, said = inputs[other], dict(zip(keys.columns, texts, strict=True))
        within = rows.where(spans.of_columns(said, rows.schema))
        marked = within.withColumns({part: F.expr(text) for part, text in said.items()})
        met = only_groups(marked, keys, spans.count <= FEW_ROWS)
        yield met.select(*(F.expr(t).alias(group) for group, t in refresh.listed(other).items()))
