"""Plans a step: its stream, from records to rows with an event time, and what its batches need."""

from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, StructField, StructType

from ..checkpoint import Checkpoint, Manifest, note_step, open_manifest
from ..quality.expectations import check_expectations
from ..quality.rules import RowRule, compile_rules
from ..sinks import prepare_sink
from ..sources import Inputs
from ..spark.columns import DEFECT, ENTERED, FILTERED, LATE_BY, SOURCE, STAGE, TIME, col
from ..spark.fingerprint import describe_state
from ..spark.output_mode import check_groups, check_output_mode, is_stateful
from ..spark.placement import check_placement
from ..spark.table_setup import Layout, ensure_table, register
from ..spec import SYSTEM_COLUMNS, Step
from ..spec.definition import digest_parts
from . import quarantine
from .bounds import open_bounded
from .classify import judge, key_columns, mark_time, require_columns
from .copies import Copies
from .groups import ReplaceAll, ReplaceGroups
from .memory import check_memory, refuse_changed_state
from .plan import Place, Plan, Rules, digest_definition, kept_columns
from .preflight import (
    check_places,
    refuse_incomparable,
    refuse_replacing,
    refuse_unjudged,
)
from .run import Run
from .survey import is_good
from .target import Append, InsertNew, NoTarget, ReplaceRange, Target
from .transform import business_columns


def plan_step(run: Run, step: Step, inputs: Inputs, path: str) -> tuple[DataFrame, Plan]:
    """The stream of a step and the plan of its batches; tables that are absent are made.

    Args: path: where its target lies; empty for none. Raises SpecError and PreflightError before
    anything is read or written.
    """
    check_places(run, step)
    frame, of_inputs = open_bounded(run, step, inputs)
    columns = business_columns(frame)
    _check_columns(step, columns)
    rules = _compile(run, step, columns, of_inputs)
    gathers = step.transform is not None and is_stateful(frame)
    refuse_replacing(run, step, gathers)
    if _reads_beyond_range(run, step):
        frame = _only_range(run, step, frame)
    frame, keys = _remember_time(step, mark_time(frame, step, columns), columns)
    refuse_incomparable(run, step, keys, columns)
    in_state = step.dedup is not None and step.dedup.memory == "state"
    if in_state:
        frame = _drop_copies(step, frame, columns, rules, keys)
    _check_query(run, step, frame, inputs)
    checkpoint = run.checkpoint(step)
    manifest = open_manifest(checkpoint, remembers=step.dedup is not None)
    copies = Copies.of(step, keys, kept_columns(step, columns))
    plan = Plan(
        step=step,
        place=_place(run, step, checkpoint, manifest),
        inputs=inputs,
        columns=columns,
        schema=_stamped(step, columns, frame.schema[SOURCE].dataType),
        rules=rules,
        target=choose_target(run, step, path, copies),
        copies=copies,
        late=run.mode.late_policy(step),
        delay_ms=0 if in_state else _delay_ms(step),
        open_batch=Checkpoint.below(checkpoint).open_batch,
        definition=digest_definition(step, run.pipeline.folder),
        stateful=in_state or gathers,
        gathers=gathers,
    )
    check_memory(run, plan, manifest)
    state = describe_state(frame, _describe_mode(step)) if gathers else []
    refuse_changed_state(run, plan, manifest, state)
    _make_tables(run, plan, manifest, state)
    return frame, plan


def choose_target(run: Run, step: Step, path: str, copies: Copies | None) -> Target:
    """How a step writes its table in this run."""
    if step.target is None:
        return NoTarget("")
    condition = run.mode.range_condition(step) if run.mode.replaces else None
    if condition is not None:
        return ReplaceRange(path, copies, condition)
    if step.output_mode == "complete":
        return ReplaceAll(path)
    if step.target.keys:
        return ReplaceGroups(path, tuple(step.target.keys))
    return Append(path) if copies is None else InsertNew(path, copies)


def _describe_mode(step: Step) -> str:
    """The output mode, and what the target knows groups by: what it holds was put there by it."""
    known_by = ", ".join(step.target.keys) if step.target is not None else ""
    return f"{step.output_mode} by {known_by}" if known_by else step.output_mode


def _check_query(run: Run, step: Step, frame: DataFrame, inputs: Inputs) -> None:
    """Raise SpecError for a query that Spark cannot run, or runs and gets wrong."""
    if step.transform is None:
        return
    where = f"{run.where(step)}: transform {step.transform}"
    inputs.told = check_placement(frame, where)
    check_output_mode(frame, step.output_mode, where)
    if step.target is not None and step.target.keys:
        check_groups(frame, where)


def _check_columns(step: Step, columns: StructType) -> None:
    """Raise SpecError where the step names a column that is not there."""
    for sink in step.sinks:
        for field, named in sink.layout.items():
            require_columns(named, columns, f"{step.name}: sink.{field}")
    order = step.dedup.order_columns if step.dedup else []
    require_columns(order, columns, f"{step.name}: dedup.order_by")


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


def _drop_copies(
    step: Step, frame: DataFrame, columns: StructType, rules: Rules, keys: Sequence[str]
) -> DataFrame:
    """Spark's own operator, which must see good rows only: so their verdict belongs into the
    stream, where it is else left to the batch, which reads only what it needs."""
    frame = judge(frame, step, columns, rules.own, rules.place)
    once = frame.where(is_good()).dropDuplicatesWithinWatermark(list(keys))
    return once.unionByName(frame.where(~is_good()))


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
        app_id=f"sluice/{run.paths.home(step.name)}/{manifest.generation}",
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


def _make_tables(run: Run, plan: Plan, manifest: Manifest, state: list[str]) -> None:
    """Make the tables that are absent, and widen those that lack a column; where a step has no
    target, prepare its sinks."""
    step, ensure = plan.step, partial(ensure_table, run.spark)
    sink = step.target
    if sink is not None:
        layout = Layout(sink.partition_by, sink.cluster_by, sink.properties)
        ensure(plan.target.path, plan.schema, layout)
        if sink.name is not None:
            register(run.spark, sink.name, plan.target.path)
    note_step(
        plan.place.checkpoint,
        manifest,
        target=plan.target.path,
        judged_by=digest_parts(step, run.pipeline.folder),
        state=state or None,
        inputs=list(step.streams) if len(step.streams) > 1 else None,
    )
    ensure(plan.place.quarantine, quarantine.SCHEMA)
    if plan.late == "keep":
        late = [*plan.schema.fields, StructField(LATE_BY, DoubleType())]
        ensure(plan.place.late, StructType(late))
    if sink is None:  # the others are the end itself: the run cannot do without them
        for other in step.further_sinks.values():
            prepare_sink(other, plan.outlet.preparation(run.spark))
