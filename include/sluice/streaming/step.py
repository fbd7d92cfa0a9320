"""Builds one step's stream, from files to rows with an event time, and the tables it writes to."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, StringType, StructField, StructType

from ..checkpoint import Checkpoint, open_manifest
from ..errors import SpecError
from ..quality.expectations import check_expectations
from ..quality.rules import compile_rules
from ..report import Counts
from ..sinks import describe_sink, prepare_sinks
from ..sources import Intake
from ..spark.columns import DEFECT, ENTERED, FILTERED, RESCUED, SOURCE, STAGE, TIME, col
from ..spark.output_mode import check_output_mode, is_stateful
from ..spark.tables import ensure_table, register
from ..spec import SYSTEM_COLUMNS, Pipeline, RunRequest, Step
from ..storage import Paths
from . import quarantine
from .classify import judge, key_columns, mark_time, require_columns
from .step_run import StepRun
from .survey import is_good
from .transform import apply_transform, business_columns


def build_step(
    spark: SparkSession,
    pipeline: Pipeline,
    step: Step,
    paths: Paths,
    request: RunRequest,
    intake: Intake,
    target: str,
) -> tuple[DataFrame, StepRun]:
    """The stream of a step and the run's bookkeeping. Args: target: where its Delta table lies; empty for none. Raises SpecError and PreflightError before anything is read or written."""
    frame = apply_transform(intake.open(spark), pipeline.folder, step.transform)
    business = business_columns(frame)
    for sink in step.sinks:
        require_columns(
            [column for columns in sink.layout.values() for column in columns],
            business,
            f"{step.name}: sink",
        )
    require_columns(
        [term.split()[0] for term in step.dedup.order_by] if step.dedup else [],
        business,
        f"{step.name}: dedup.order_by",
    )
    _refuse_sending_twice(step, request)
    rules, table_rules = compile_rules(step.rules, {f.name: f.dataType for f in business.fields})
    if table_rules:
        check_expectations(table_rules)
    if request.window is not None and (
        not step.source.chooses_by_date or request.write == "replace"
    ):
        frame = _only_window(frame, step, request)
    frame = mark_time(frame, step, business)
    if step.dedup is not None and step.dedup.within != "forever":
        frame = frame.withWatermark(
            TIME, f"{int(step.dedup.within.total_seconds() * 1000)} milliseconds"
        )
    keys = key_columns(step, business) if step.dedup else []
    if step.dedup is not None and step.dedup.memory == "state":
        # The operator must see good rows only, so their verdict belongs into the stream; else it is left to the batch, which reads only what it needs.
        frame = judge(frame, step, business, rules)
        frame = (
            frame.where(is_good())
            .dropDuplicatesWithinWatermark(keys)
            .unionByName(frame.where(~is_good()))
        )
    if step.transform is not None:
        check_output_mode(
            frame, step.output_mode, f"{pipeline.name}.{step.name}: transform {step.transform}"
        )
    checkpoint = paths.checkpoint(step.name, request.backfill)
    run = StepRun(
        step,
        paths,
        intake,
        target,
        pipeline.folder,
        [request.run_id],
        open_manifest(checkpoint).generation,
        checkpoint,
        business,
        keys,
        rules,
        table_rules,
        set(pipeline.pii),
        late="merge" if step.dedup is None or request.window is not None else step.dedup.late,
        open_batch=Checkpoint(f"{checkpoint}/spark").open_batch,
        replace_where=_replace_where(step, request),
        stateful=(step.dedup is not None and step.dedup.memory == "state")
        or (step.transform is not None and is_stateful(frame)),
    )
    columns = _ensure_tables(spark, run, frame.schema[SOURCE].dataType)
    prepare_sinks(spark, pipeline, step, columns, business.names)
    return frame, run


def _window_condition(step: Step, request: RunRequest) -> str:
    start, end = (
        f"TIMESTAMP '{t:%Y-%m-%d %H:%M:%S.%f}+00:00'"
        for t in (request.window.start, request.window.end)
    )
    return f"`{step.event_time.column}` >= {start} AND `{step.event_time.column}` < {end}"


def _replace_where(step: Step, request: RunRequest) -> str | None:
    return (
        _window_condition(step, request)
        if request.window is not None and request.write == "replace"
        else None
    )


def _only_window(frame: DataFrame, step: Step, request: RunRequest) -> DataFrame:
    """Mark rows outside the backfill's window as filtered; rows without a time stay, for the quarantine."""
    inside = (
        F.coalesce(F.expr(_window_condition(step, request)), F.lit(True))
        | F.col(DEFECT).isNotNull()
        | col(step.event_time.column).isNull()
    )
    return frame.withColumn(
        STAGE, F.when((F.col(STAGE) == ENTERED) & ~inside, F.lit(FILTERED)).otherwise(F.col(STAGE))
    )


def _refuse_sending_twice(step: Step, request: RunRequest) -> None:
    """Raise SpecError for a replaced range whose rows a further sink would get once more."""
    twice = [describe_sink(sink) for sink in step.further_sinks if not sink.upsert_keys]
    if twice and request.window is not None and request.write == "replace":
        raise SpecError(
            "replacing a range would send its rows again",
            where=f"{step.name}: sink",
            value=", ".join(twice),
            do="Backfill with `--write merge`: only rows that are missing are sent",
        )


def _ensure_tables(spark: SparkSession, run: StepRun, source_type: DataType) -> StructType:
    """Make the tables that are absent; returns the columns of the target, which are those that every sink gets."""
    rescued = [StructField(RESCUED, StringType())] if run.step.keeps_rescued else []
    system = [
        StructField(SOURCE, source_type) if n == SOURCE else quarantine.SCHEMA[n]
        for n in SYSTEM_COLUMNS
    ]
    columns = StructType([*run.business.fields, *rescued, *system])
    sink = run.step.target
    if sink is not None:
        ensure_table(
            spark, run.target, columns, sink.partition_by, sink.cluster_by, sink.properties
        )
        if sink.name is not None:
            register(spark, sink.name, run.target)
    ensure_table(spark, run.paths.quarantine(run.step.name), quarantine.SCHEMA)
    if run.late == "keep":
        late = StructType([*columns.fields, StructField("_late_by_seconds", DoubleType())])
        ensure_table(spark, run.paths.late(run.step.name), late)
    return columns


def count_dropped_by_state(spark: SparkSession, counts: Counts) -> None:
    """Add what Spark's dedup operator dropped from the batch that the session's query has just read: duplicates, and rows behind the watermark.

    Asked within the batch, because its note must hold them: the query's own progress comes too late for a run that dies after it.
    """
    for query in spark.streams.active:
        nodes = [query._jsq.streamingQuery().lastExecution().executedPlan()]
        for node in nodes:
            below = node.children()
            nodes += [below.apply(i) for i in range(below.size())]
            duplicate, late = (
                _metric(node, name)
                for name in ("numDroppedDuplicateRows", "numRowsDroppedByWatermark")
            )
            for name, number in (
                ("duplicate", duplicate),
                ("late", late),
                ("read", duplicate + late),
                ("parsed", duplicate + late),
                ("entered", duplicate + late),
            ):
                setattr(counts, name, getattr(counts, name) + number)


def _metric(node: object, name: str) -> int:
    found = node.metrics().get(name)
    return 0 if found.isEmpty() else found.get().value()
