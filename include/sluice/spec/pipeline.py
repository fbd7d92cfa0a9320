"""A pipeline: one YAML file, an ordered list of steps."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from ..storage.paths import Paths
from .continuous import why_not_continuous
from .dedup import Dedup, EventTime, RuleSpec
from .model import Spec
from .quantities import Duration, parse_duration
from .sink import DeltaSink, Sink
from .source import Source, TableSource
from .trial import is_trial_source, why_trial
from .trigger import AVAILABLE_NOW, Trigger, describe_trigger, never_ends, trigger_kind

_NAME = r"^[a-z][a-z0-9_]{0,62}$"


def _parse_schedule(value: object) -> object:
    """Keep cron text and presets as they are; turn `30 minutes` into a timedelta."""
    if not isinstance(value, str) or value.startswith("@") or len(value.split()) >= 5:
        return value
    try:
        return parse_duration(value)
    except ValueError:
        raise ValueError(
            "not a schedule; write cron ('0 6 * * *'), a preset ('@daily'), a duration ('30 minutes') or null"
        ) from None


def _as_list(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


Schedule = Annotated[
    timedelta | str | None,
    BeforeValidator(_parse_schedule),
    WithJsonSchema({"type": ["string", "null"]}),
]


class Step(Spec):
    """One streaming query with its own checkpoint and target."""

    name: str = Field(pattern=_NAME)
    source: Source
    transform: str | None = None
    """A `.sql` file (SELECT ... FROM source) or `file.py:function` (DataFrame -> DataFrame), relative to the YAML."""
    event_time: EventTime | None = None
    dedup: Dedup | None = None
    rules: list[RuleSpec] = []
    sinks: Annotated[
        list[Sink], BeforeValidator(_as_list, json_schema_input_type=Sink | list[Sink])
    ] = Field(default=[DeltaSink()], alias="sink", min_length=1)
    """One sink or several. A Delta table among them is the target: it remembers the keys, and the others get the rows that were written to it."""
    trigger: Trigger = AVAILABLE_NOW
    """`available_now` drains what waits and stops; the others (`once`, `default`, `{processing_time: 10 seconds}`, `{continuous: 1 second}`) give something up, which reports and `sluice validate` say."""

    @property
    def target(self) -> DeltaSink | None:
        """The Delta table of the step; None for a step that has none."""
        return next((sink for sink in self.sinks if isinstance(sink, DeltaSink)), None)

    def target_path(self, paths: Paths) -> str:
        """Where the target lies, as far as the file says it; empty for a step without one."""
        return paths.table(self.name, self.target.table) if self.target is not None else ""

    @property
    def further_sinks(self) -> list[Spec]:
        """Every sink but the target."""
        return [sink for sink in self.sinks if sink is not self.target]

    @property
    def output_mode(self) -> str:
        """Spark's output mode: `update` where a sink takes groups that changed, else `append`."""
        return (
            "update"
            if any(getattr(sink, "mode", "") == "update" for sink in self.sinks)
            else "append"
        )

    @property
    def columns(self) -> dict[str, str]:
        """The source's columns, as far as the file says them."""
        return getattr(self.source, "columns", {})

    @property
    def keeps_rescued(self) -> bool:
        """True where fields outside the schema are kept in `_rescued`."""
        return getattr(self.source, "unknown_fields", "ignore") == "rescue"

    @model_validator(mode="after")
    def _check_step(self) -> "Step":
        if sum(isinstance(sink, DeltaSink) for sink in self.sinks) > 1:
            raise ValueError(
                "two Delta sinks; a step has one target: make the second a step of its own with `source: {kind: table, step: ...}`"
            )
        if self.target is not None and self.dedup is None and self.target.mode == "insert_new":
            raise ValueError("sink mode insert_new needs `dedup`; add it or write `mode: append`")
        if self.target is not None and self.dedup is not None and self.target.mode == "append":
            raise ValueError(
                "sink mode append does not deduplicate; remove `dedup` or write `mode: insert_new`"
            )
        keys = self.dedup.keys if self.dedup is not None else []
        for sink in self.sinks:
            if (
                getattr(sink, "mode", "") == "upsert"
                and keys
                and (keys == "*" or not set(keys) <= set(sink.keys))
            ):
                raise ValueError(
                    "the `keys` of an upsert must hold those of `dedup`, or two rows of a batch could want one place; add them, or write `mode: append`"
                )
        if self.target is None and self.dedup is not None and self.dedup.memory == "table":
            raise ValueError(
                "`memory: table` needs a Delta sink that remembers the keys; add one, or write `memory: state`"
            )
        added_to = [
            sink.kind
            for sink in self.sinks
            if sink.kind in ("delta", "files")
            or getattr(sink, "mode", "update") in ("append", "insert_new")
        ]
        if self.output_mode == "update" and added_to:
            raise ValueError(
                f"sink mode update sends a row again when it changes, and the sink {added_to[0]} of the same step would add each to those before; give it a step of its own"
            )
        if self.dedup is not None and self.event_time is None:
            raise ValueError(
                "`dedup` needs `event_time`; name the column that says when a row happened"
            )
        if getattr(self.source, "notifications", None) is not None and never_ends(self.trigger):
            raise ValueError(
                f"`notifications` name what a run reads as it begins, and trigger {trigger_kind(self.trigger)} waits for more; write `trigger: available_now`"
            )
        if (
            trigger_kind(self.trigger) == "continuous"
            and (why := why_not_continuous(self)) is not None
        ):
            raise ValueError(f"trigger continuous does not fit this step: {why}")
        if self.transform is None and self.columns:
            self._check_names()
        return self

    def _check_names(self) -> None:
        """Without a transform the columns are known here, so a wrong name dies before Spark starts."""
        keys = self.dedup.keys if self.dedup and self.dedup.keys != "*" else []
        order = [term.split()[0] for term in self.dedup.order_by] if self.dedup else []
        used = [("event_time.column", self.event_time.column)] if self.event_time else []
        used += [("dedup.keys", k) for k in keys] + [("dedup.order_by", c) for c in order]
        used += [
            (f"sink.{field}", c)
            for sink in self.sinks
            for field in ("partition_by", "cluster_by")
            for c in getattr(sink, field, [])
        ]
        for rule in self.rules:
            used += [(f"rule {rule.type}", c) for c in rule_columns(rule)]
        for place, column in used:
            if column not in self.columns:
                raise ValueError(
                    f"{place} names column {column!r}, which the schema does not have; it has {', '.join(self.columns)}"
                )


def describe_limits(step: Step) -> list[str]:
    """What a step's choices give up, one sentence each; `sluice validate` prints them."""
    lost = describe_trigger(step.trigger)
    limits = [f"{step.name}: {lost}"] if lost else []
    if step.dedup and step.dedup.memory == "state":
        limits.append(
            f"{step.name}: with `memory: state` Spark drops rows behind the watermark itself: they are counted as late and kept nowhere, "
            "and a backfill does not share that memory"
        )
        if step.dedup.late != "merge":
            limits.append(
                f"{step.name}: `late: {step.dedup.late}` has no effect with `memory: state`"
            )
        if step.dedup.order_by:
            limits.append(
                f"{step.name}: with `memory: state` the first row of a key to arrive stays, whatever `order_by` says"
            )
    elif step.dedup and step.dedup.keys != "*" and not step.dedup.order_by:
        limits.append(
            f"{step.name}: exact for every cut of the backlog as long as rows with the same key are equal; where they differ, the first written stays, "
            "and the report counts such keys. `order_by` names the winner"
        )
    elif step.dedup and step.dedup.first_arrives_first:
        limits.append(
            f"{step.name}: exact for every cut of the backlog as long as the first by `order_by` arrives first; the report counts the keys of which it did not"
        )
    if step.dedup and step.dedup.memory == "table" and step.dedup.late != "merge":
        limits.append(
            f"{step.name}: with `late: {step.dedup.late}` it depends on how the backlog is cut which rows are late; `late: merge` does not"
        )
    if step.dedup and step.dedup.keys != "*" and step.dedup.within != "forever":
        limits.append(
            f"{step.name}: copies of a key farther than `within` apart in event time are two rows; `within: forever` compares with the whole table"
        )
    if (
        any(sink.kind == "kafka" for sink in step.sinks)
        and trigger_kind(step.trigger) != "continuous"
    ):  # which has said so, and has no batches
        limits.append(
            f"{step.name}: a record may be sent to Kafka again after a run that was killed: the headers `sluice.batch` and `sluice.position` tell a reader which it has"
        )
    return limits


def rule_columns(rule: RuleSpec) -> list[str]:
    """The columns a rule's kwargs name."""
    kwargs = rule.kwargs
    single = [
        kwargs[k] for k in ("column", "column_A", "column_B") if isinstance(kwargs.get(k), str)
    ]
    return single + list(kwargs.get("column_list") or []) + list(kwargs.get("column_set") or [])


class Pipeline(Spec):
    """What runs, when, for whom."""

    name: str = Field(pattern=_NAME)
    description: str = ""
    """Markdown; the DAG's documentation page in Airflow."""
    owner: str = "data-engineering"
    schedule: Schedule = None
    """Cron text, a preset, a duration, or null for runs by hand."""
    start_date: datetime = datetime(2026, 1, 1)
    """First moment of the schedule and the earliest a backfill may reach; UTC when no zone is given."""
    master: str = "local[*]"
    """Where Spark runs: local[*], spark://host:7077, yarn, k8s://https://host."""
    spark_conn_id: str = "spark_default"
    """The Airflow connection that submits the job."""
    spark: dict[str, str] = {}
    """Spark settings that win over ours."""
    budget: Duration = timedelta(hours=1)
    """A run ends within this time; what is left waits for the next run."""
    idle_run_every: Duration = timedelta(days=7)
    """Spark runs after this time even when nothing is new."""
    max_batch_failures: int = Field(default=3, ge=0)
    """Retries of a task that failed for a reason that may pass."""
    pii: list[str] = []
    """Columns whose values are never shown in a report."""
    steps: list[Step] = Field(min_length=1)
    folder: Path = Field(default=Path("."), exclude=True, json_schema_extra={"readOnly": True})
    """Where the YAML lies; filled in by the loader."""

    def source_path(self, source: TableSource, paths: Paths) -> str:
        """Folder, URI or catalog name of the table that a step reads."""
        if source.step is not None:
            return next(step.target_path(paths) for step in self.steps if step.name == source.step)
        return source.name or paths.table("", source.path)

    @field_validator("spark", mode="before")
    @classmethod
    def _stringify(cls, conf: dict) -> dict:
        return {
            k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in (conf or {}).items()
        }

    @model_validator(mode="after")
    def _check_unattended(self) -> "Pipeline":
        for step in self.steps:
            if self.schedule is not None and is_trial_source(step.source):
                raise ValueError(
                    f"step {step.name}: source {step.source.kind} is for trials ({why_trial(step.source)}); "
                    "write `schedule: null` and start it with `sluice run --dev`"
                )
        for step in self.steps[:-1]:
            if never_ends(step.trigger):
                raise ValueError(
                    f"step {step.name}: trigger {trigger_kind(step.trigger)} takes all the time of a run, so no step after it would get any; make it the last step"
                )
        earlier: list[str] = []
        for step in self.steps:
            if (
                isinstance(step.source, TableSource)
                and step.source.step is not None
                and step.source.step not in earlier
            ):
                raise ValueError(
                    f"step {step.name} reads step {step.source.step!r}, which is no earlier step of this pipeline with a Delta sink"
                )
            earlier += [step.name] if step.target is not None else []
        return self

    @field_validator("steps")
    @classmethod
    def _check_unique(cls, steps: list[Step]) -> list[Step]:
        names = [step.name for step in steps]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(
                f"two steps are named {', '.join(twice)}; each has its own checkpoint and table, so give each its own name"
            )
        queues = [
            step.source.notifications.queue
            for step in steps
            if getattr(step.source, "notifications", None) is not None
        ]
        if len(set(queues)) < len(queues):
            raise ValueError(
                "two steps read one queue, and each would delete what it tells the other; give each step a queue of its own"
            )
        return steps
