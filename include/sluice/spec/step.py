"""A step: one streaming query with its own checkpoint and target."""

from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ..storage.paths import Paths
from .continuous import why_not_continuous
from .dedup import Dedup, EventTime
from .delta_sink import DeltaSink
from .input import ONLY, Input, WatermarkPolicy
from .model import Spec
from .rules import ROW_LEVEL, RuleSpec
from .sink import Sink
from .sink_kind import SinkKind
from .source import Source
from .source_kind import SourceKind
from .step_checks import check_columns, check_inputs
from .trigger import AVAILABLE_NOW, Trigger, never_ends, trigger_kind

NAME = r"^[a-z][a-z0-9_]{0,62}$"
"""Of pipelines and steps: a name becomes part of paths, of tables' names and of DAG ids."""


def _as_list(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


class Step(Spec):
    """One streaming query with its own checkpoint and target."""

    name: str = Field(pattern=NAME)
    uid: str | None = Field(default=None, pattern=NAME)
    """As of the pipeline: what its table, checkpoint and keys are known by."""
    source: Source | None = None
    inputs: dict[str, Input] = {}
    """Several inputs by name, in place of `source`."""
    watermark_policy: WatermarkPolicy = "min"
    """With several inputs: closed is what all of them have passed (`min`), or what the first of
    them has (`max`), where rows of the slower ones are late."""
    transform: str | None = None
    """A `.sql` file (SELECT ... FROM source) or `file.py:function` (DataFrame -> DataFrame),
    relative to the YAML; with `inputs` it sees each by its name."""
    event_time: EventTime | None = None
    dedup: Dedup | None = None
    rules: list[RuleSpec] = []
    sinks: Annotated[
        list[Sink], BeforeValidator(_as_list, json_schema_input_type=Sink | list[Sink])
    ] = Field(default=[DeltaSink()], alias="sink", min_length=1)
    """One sink or several. A Delta table among them is the target: it remembers the keys, and the
    others get the rows that were written to it."""
    trigger: Trigger = AVAILABLE_NOW
    """`available_now` drains what waits and stops; the others (`once`, `default`,
    `{processing_time: 10 seconds}`, `{continuous: 1 second}`) give something up, which reports and
    `sluice validate --explain` say."""

    state_store: Literal["rocksdb", "hdfs"] | None = None
    """Where a step with state keeps it while it runs: `rocksdb` on the disk, the default, or `hdfs`
    (HDFS-backed) in the JVM's memory, with small state a little faster."""

    @property
    def streams(self) -> dict[str, Input]:
        """The inputs of which each record is read once, by name."""
        if self.source is not None:
            return {ONLY: Input.model_construct(source=self.source, name=ONLY)}
        return {name: one for name, one in self.inputs.items() if not one.static}

    @property
    def statics(self) -> dict[str, Input]:
        """The tables that are read anew in each run, by name."""
        return {name: one for name, one in self.inputs.items() if one.static}

    @property
    def sources(self) -> list[SourceKind]:
        """Where all that it reads comes from."""
        return [one.source for one in (*self.streams.values(), *self.statics.values())]

    @property
    def transforms(self) -> list[str]:
        """Every SQL file and function between its sources and its rules."""
        named = [self.transform, *(one.transform for one in self.inputs.values())]
        return [code for code in named if code]

    @property
    def target(self) -> DeltaSink | None:
        """The Delta table of the step; None for a step that has none."""
        return cast("DeltaSink | None", next((s for s in self.sinks if s.is_target), None))

    def target_path(self, paths: Paths) -> str:
        """Where the target lies, as far as the file says it; empty for a step without one."""
        return paths.table(self.name, self.target.table) if self.target is not None else ""

    @property
    def further_sinks(self) -> dict[str, SinkKind]:
        """Every sink but the target, by its title: what reports call it, and its place is noted
        under."""
        found: dict[str, SinkKind] = {}
        for sink in self.sinks:
            if sink is not self.target:
                twin = sink.title in found
                title = f"{sink.title} ({len(found) + 1})" if twin else sink.title
                found[title] = sink.ranked(self.newest_first)
        return found

    @property
    def followers(self) -> dict[str, SinkKind]:
        """The further sinks of which it is remembered what they lack, so that they follow the
        target; none in a step without one."""
        lasting = {title: sink for title, sink in self.further_sinks.items() if sink.durable}
        return lasting if self.target is not None else {}

    @property
    def newest_first(self) -> list[str]:
        """The order by which the newest row of a key comes first; empty where nothing tells."""
        if self.dedup is not None and self.dedup.order_by:
            return self.dedup.order_by
        return [f"{self.event_time.column} desc"] if self.event_time is not None else []

    @property
    def output_mode(self) -> str:
        """Spark's output mode: `update` where a sink takes groups that changed, else `append`."""
        return "update" if any(sink.sends_changes for sink in self.sinks) else "append"

    @property
    def columns(self) -> dict[str, str]:
        """The source's columns, as far as the file says them."""
        return self.source.declared if self.source is not None else {}

    @property
    def keeps_rescued(self) -> bool:
        """True where fields outside the schema are kept in `_rescued`."""
        return self.source is not None and self.source.keeps_rescued

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns by which rows are known; none where all are, or nobody said."""
        return tuple(self.dedup.keys) if self.dedup and self.dedup.keys != "*" else ()

    @property
    def remembers(self) -> bool:
        """True where the target tells a row that comes again from one that is new."""
        return self.dedup is not None and self.dedup.memory == "table"

    @field_validator("inputs")
    @classmethod
    def _name_inputs(cls, inputs: dict[str, Input]) -> dict[str, Input]:
        return {name: one.model_copy(update={"name": name}) for name, one in inputs.items()}

    @model_validator(mode="after")
    def _check_inputs(self) -> "Step":
        check_inputs(self)
        return self

    @model_validator(mode="after")
    def _check_target(self) -> "Step":
        """The target against `dedup`, which it remembers the keys of."""
        if sum(sink.is_target for sink in self.sinks) > 1:
            raise ValueError(
                "two Delta sinks; a step has one target: make the second a step of its own with "
                "`source: {kind: table, step: ...}`"
            )
        mode = self.target.mode if self.target is not None else None
        if self.dedup is None and mode == "insert_new":
            raise ValueError("sink mode insert_new needs `dedup`; add it or write `mode: append`")
        if self.dedup is not None and mode == "append":
            raise ValueError(
                "sink mode append does not deduplicate; remove `dedup` or write `mode: insert_new`"
            )
        if self.target is None and self.remembers:
            raise ValueError(
                "`memory: table` needs a Delta sink that remembers the keys; add one, or write "
                "`memory: state`"
            )
        if self.dedup is not None and self.event_time is None:
            raise ValueError(
                "`dedup` needs `event_time`; name the column that says when a row happened"
            )
        return self

    @model_validator(mode="after")
    def _check_rules(self) -> "Step":
        """A rule on the whole table needs a table that holds what the run wrote."""
        of_table = [rule.type for rule in self.rules if rule.type not in ROW_LEVEL]
        if self.target is None and of_table:
            raise ValueError(
                f"rule {of_table[0]} looks at the whole table, and this step writes none; add "
                "`{kind: delta}` to its sinks, or write a rule that looks at single rows"
            )
        return self

    @model_validator(mode="after")
    def _check_sinks(self) -> "Step":
        """Sinks that take the place of rows, beside `dedup` and beside those that only add."""
        keys = self.dedup.keys if self.dedup is not None else []
        for sink in self.sinks:
            if sink.upsert_keys and keys and not (set(keys) <= set(sink.upsert_keys)):
                raise ValueError(
                    "the `keys` of an upsert must hold those of `dedup`, or two rows of a batch "
                    "could want one place; add them, or write `mode: append`"
                )
        for title, sink in self.further_sinks.items():
            self._check_changes(title, sink)
        added_to = [sink.kind for sink in self.sinks if sink.adds_rows]
        if self.output_mode == "update" and added_to:
            raise ValueError(
                "sink mode update sends a row again when it changes, and the sink "
                f"{added_to[0]} of the same step would add each to those before; give it a step "
                "of its own"
            )
        return self

    def _check_changes(self, title: str, sink: SinkKind) -> None:
        """Raise ValueError for a sink that would end with other rows than the target."""
        if self.remembers and self.dedup and self.dedup.replaces and not sink.follows_changes:
            raise ValueError(
                f"with `order_by` a row of the target may give way to a later one, and {title} "
                "keeps both; write a sink that replaces rows (jdbc with `mode: upsert`, kafka with "
                "a `key`), or promise `first_arrives_first: true`"
            )
        order = [name for name, _ in sink.order]
        if sink.upsert_keys and not order:
            raise ValueError(
                f"nothing tells which row of a key {title} is to keep; write `order_by` at the "
                "sink (`[updated_at desc]`), or `event_time`"
            )
        for name in order:
            if sink.written and name not in sink.written:
                raise ValueError(
                    f"{title} compares rows by column {name!r} and does not write it; add it to "
                    "`columns`, or write another `order_by` at the sink"
                )

    @model_validator(mode="after")
    def _check_trigger(self) -> "Step":
        kind = trigger_kind(self.trigger)
        if never_ends(self.trigger) and any(source.queue for source in self.sources):
            raise ValueError(
                f"`notifications` name what a run reads as it begins, and trigger {kind} waits for "
                "more; write `trigger: available_now`"
            )
        asked = {"dedup": self.dedup, "rules": self.rules, "event_time": self.event_time}
        if kind == "continuous" and (why := why_not_continuous(self.sources, self.sinks, asked)):
            raise ValueError(f"trigger continuous does not fit this step: {why}")
        return self

    @model_validator(mode="after")
    def _check_columns(self) -> "Step":
        check_columns(self)
        return self
