"""Plans a step: its stream, from records to rows with an event time, and what its batches need."""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructField, StructType

from ..checkpoint import Checkpoint, Manifest, note_step, open_manifest
from ..launch import STATE_ENCODING
from ..quality.expectations import check_expectations
from ..quality.rules import RowRule, compile_rules
from ..sinks import prepare_sink
from ..sources import Inputs
from ..spark.columns import DEFECT, ENTERED, FILTERED, SOURCE, STAGE, TIME, col
from ..spark.custom_checks import check_custom_state
from ..spark.custom_state import Declared, read_declared
from ..spark.output_mode import check_groups, check_output_mode, is_stateful
from ..spark.placement import check_placement
from ..spec import SYSTEM_COLUMNS, Step
from ..spec.definition import digest_parts
from . import quarantine
from .bounds import open_bounded
from .classify import key_columns, mark_time, require_columns
from .commits import open_commits
from .copies import Copies
from .copies_in_state import drop_copies
from .groups import ReplaceAll, ReplaceGroups
from .memory import check_memory, follow_state
from .plan import Place, Plan, Rules, digest_definition, kept_columns
from .preflight import (
    check_places,
    refuse_incomparable,
    refuse_newest_first,
    refuse_replacing,
    refuse_unjudged,
)
from .refresh import Refresh
from .regroup import RefreshGroups
from .run import Run
from .state_store import check_store, refuse_other_store
from .step_tables import prepare_others, prepare_target
from .target import Append, InsertNew, NoTarget, ReplaceRange, Target
from .transform import business_columns


def plan_step(run: Run, step: Step, inputs: Inputs, path: str) -> tuple[DataFrame, Plan]:
    """The stream of a step and the plan of its batches; tables are made that their first rows do
    not make.

    Args: path: where its target lies; empty for none. Raises SpecError and PreflightError before
    anything is read or written.
    """
    check_places(run, step)
    frame, of_inputs, refresh = _open(run, step, inputs)
    columns = _check_columns(step, business_columns(frame))
    rules = _compile(run, step, columns, of_inputs)
    gathers = step.transform is not None and is_stateful(frame)
    refuse_replacing(run, step, gathers)
    refuse_newest_first(run, step, gathers)
    if _reads_beyond_range(run, step):
        frame = _only_range(run, step, frame)
    frame, keys = _remember_time(step, mark_time(frame, step, columns), columns)
    refuse_incomparable(run, step, keys, columns)
    checkpoint = run.checkpoint(step)
    in_state = step.dedup is not None and step.dedup.memory == "state"
    if in_state:
        frame = drop_copies(step, frame, columns, rules, keys, checkpoint)
    declared = _check_query(run, step, frame, inputs)
    manifest = open_manifest(checkpoint, remembers=step.dedup is not None)
    copies = Copies.of(step, keys, kept_columns(step, columns))
    plan = Plan(
        step=step,
        place=_place(run, step, checkpoint, manifest),
        inputs=inputs,
        columns=columns,
        schema=_stamped(step, columns, frame.schema[SOURCE].dataType),
        rules=rules,
        target=choose_target(run, step, path, copies, columns),
        copies=copies,
        late=run.mode.late_policy(step),
        delay_ms=0 if in_state else _delay_ms(step),
        open_batch=Checkpoint.below(checkpoint).open_batch,
        definition=digest_definition(step, run.pipeline.folder),
        stateful=in_state or gathers,
        gathers=gathers,
        declared=declared,
        refresh=refresh,
    )
    check_memory(run, plan, manifest)
    refuse_other_store(run, plan)
    _make_tables(run, plan, manifest, **follow_state(run, plan, manifest, frame))
    return frame, plan


def _open(run: Run, step: Step, inputs: Inputs) -> tuple[DataFrame, list[RowRule], Refresh | None]:
    """The stream of a step, the rules of its inputs, and how it is refreshed where it is."""
    if not step.groups:
        return (*open_bounded(run, step, inputs), None)
    frame, refresh = open_commits(run, step, inputs)
    return frame, [], refresh


def choose_target(
    run: Run, step: Step, path: str, copies: Copies | None, columns: StructType
) -> Target:
    """How a step writes its table in this run. Args: columns: the user's."""
    if step.target is None:
        return NoTarget("")
    if step.groups:
        return RefreshGroups(path, tuple(step.groups), tuple(columns.names))
    condition = run.mode.range_condition(step) if run.mode.replaces else None
    if condition is not None:
        return ReplaceRange(path, copies, condition)
    if step.output_mode == "complete":
        return ReplaceAll(path)
    if step.target.keys:
        return ReplaceGroups(path, tuple(step.target.keys))
    if copies is None:
        return Append(path)
    return InsertNew(path, copies, frozenset(run.pipeline.pii))


def _check_query(run: Run, step: Step, frame: DataFrame, inputs: Inputs) -> Declared:
    """The state variables that the query declares. Raise SpecError for a query that Spark cannot
    run, or runs and gets wrong."""
    if step.transform is None or step.groups:
        return Declared()
    where = f"{run.where(step)}: transform {step.transform}"
    inputs.told += check_placement(frame, where, several=len(inputs.intakes) > 1)
    declared = read_declared(frame, where)
    run.spark.conf.set(STATE_ENCODING, declared.encoding)  # Spark's own check asks for it
    if declared.operators:
        check_custom_state(frame, step.output_mode, declared, where)
    check_output_mode(frame, step.output_mode, where)
    if step.target is not None and step.target.keys:
        check_groups(frame, where)
    check_store(run, step, frame)
    return declared


def _check_columns(step: Step, columns: StructType) -> StructType:
    """The same columns. Raises SpecError where the step names one that is not there."""
    for sink in step.sinks:
        for field, named in sink.layout.items():
            require_columns(named, columns, f"{step.name}: sink.{field}")
    order = step.dedup.order_columns if step.dedup else []
    require_columns(order, columns, f"{step.name}: dedup.order_by")
    return columns


def _compile(run: Run, step: Step, columns: StructType, of_inputs: list[RowRule]) -> Rules:
    row, table = compile_rules(step.rules, {f.name: f.dataType for f in columns.fields})
    if table:
        refuse_unjudged(run, step, table)
        check_expectations(table)
    limit = step.source.malformed_limit if step.source is not None else None
    row = [*of_inputs, *row]
    asked = len(of_inputs) + len(step.rules)
    return Rules(row, table, frozenset(run.pipeline.pii), limit, len(of_inputs), asked)


def _delay_ms(step: Step) -> int:
    """The watermark's delay; 0 where the step has none of its own."""
    if step.dedup is None or isinstance(step.dedup.within, str):
        return 0
    return int(step.dedup.within.total_seconds() * 1000)


def _remember_time(
    step: Step, frame: DataFrame, columns: StructType
) -> tuple[DataFrame, list[str]]:
    """The stream with its watermark, which Spark keeps from run to run, and the key's columns."""
    if step.dedup is None:
        return frame, []
    if delay := _delay_ms(step):
        frame = frame.withWatermark(TIME, f"{delay} milliseconds")
    return frame, key_columns(step, columns)


def _reads_beyond_range(run: Run, step: Step) -> bool:
    """True for a backfill that reads rows which may lie outside of its range."""
    by_date = all(one.source.chooses_by_date for one in step.streams.values())
    return run.mode.is_backfill and (run.mode.replaces or not by_date)


def _only_range(run: Run, step: Step, frame: DataFrame) -> DataFrame:
    """Mark rows outside the backfill's range as filtered; rows without a time stay, for the
    quarantine."""
    condition = run.mode.range_condition(step)
    if condition is None or step.event_time is None:
        return frame
    untimed = F.col(DEFECT).isNotNull() | col(step.event_time.column).isNull()
    inside = F.coalesce(F.expr(condition), F.lit(True)) | untimed
    left_out = (F.col(STAGE) == ENTERED) & ~inside
    return frame.withColumn(STAGE, F.when(left_out, F.lit(FILTERED)).otherwise(F.col(STAGE)))


def _place(run: Run, step: Step, checkpoint: str, manifest: Manifest) -> Place:
    return Place(
        name=run.where(step),
        app_id=run.app_id(step, manifest.generation),
        checkpoint=checkpoint,
        quarantine=run.paths.quarantine(step.name),
        late=run.paths.late(step.name),
        folder=run.pipeline.folder,
        root=run.paths.root,
    )


def _stamped(step: Step, columns: StructType, source: DataType) -> StructType:
    """The columns of the target: what is kept of a row, and the system's."""
    kinds = {SOURCE: source}
    system = [
        StructField(name, kinds.get(name, quarantine.SCHEMA[name].dataType))
        for name in SYSTEM_COLUMNS
    ]
    return StructType([*kept_columns(step, columns).fields, *system])


def _make_tables(run: Run, plan: Plan, manifest: Manifest, **kept: Any) -> None:
    """Make the tables that have to be there, and widen those that lack a column; where a step has
    no target, prepare its sinks. Args: kept: what is noted of the query's state, by the fields of a
    manifest."""
    step = plan.step
    prepare_target(run.spark, plan)
    note_step(
        plan.place.checkpoint,
        manifest,
        target=plan.target.path,
        judged_by=digest_parts(step, run.pipeline.folder),
        **kept,
        inputs=list(step.streams) if len(step.streams) > 1 else None,
    )
    prepare_others(run.spark, plan)
    if step.target is None:  # the others are the end itself: the run cannot do without them
        for other in step.further_sinks.values():
            prepare_sink(other, plan.outlet.preparation(run.spark))
