"""A step: one streaming query with its own checkpoint and target."""

from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ..storage.paths import Paths
from .continuous import why_not_continuous
from .dedup import Dedup, EventTime
from .delta_sink import CHANGE_FEED, DeltaSink
from .file_source import FileSource
from .groups import Groups, check_groups
from .input import ONLY, Input, WatermarkPolicy
from .model import Spec
from .rules import ROW_LEVEL, RuleSpec
from .sink import Sink
from .sink_checks import check_sinks, check_target
from .sink_kind import OutputMode, SinkKind
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
    groups: Groups = {}
    """Refresh by group: columns of the result, and the SQL over a row of an input that says which
    group it belongs to (`{day: date(at)}`; by input where they differ), or a list of several; one
    that the query does not select is called `_group_` and a name. A run computes again the groups
    that new commits touch, from the whole inputs, and replaces those that changed."""
    refresh: Literal["always", "auto", "never"] = "auto"
    """Of a step with `groups`: compute only those that are touched (`always`), all of them in each
    run (`never`), or what costs less by the sizes of files."""
    on_lost_history: Literal["recompute", "stop"] = "recompute"
    """Of a step with `groups`, where commits of an input cannot be read any more: compute all of
    it, or refuse."""
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
    def cleaned(self) -> dict[str, FileSource]:
        """The folders whose files are taken away once they are read, by the input's name."""
        read = {name: one.source for name, one in self.streams.items()}
        return {
            name: source
            for name, source in read.items()
            if isinstance(source, FileSource) and source.clean_source is not None
        }

    @property
    def transforms(self) -> list[str]:
        """Every SQL file and function between its sources and its rules."""
        named = [self.transform, *(one.transform for one in self.inputs.values())]
        return [code for code in named if code]

    @property
    def target(self) -> DeltaSink | None:
        """The Delta table of the step; None for a step that has none."""
        return cast("DeltaSink | None", next((s for s in self.sinks if s.is_target), None))

    @property
    def table_properties(self) -> dict[str, str]:
        """Of the target. One that is refreshed keeps a feed of its changes unless it says
        otherwise: steps that read it are told by it what has changed."""
        asked = self.target.properties if self.target is not None else {}
        return {**({CHANGE_FEED: "true"} if self.groups else {}), **asked}

    @property
    def keeps_changes(self) -> bool:
        """True where the target keeps a feed of its changes."""
        return self.table_properties.get(CHANGE_FEED, "false").lower() == "true"

    def target_path(self, paths: Paths) -> str:
        """Where the target lies, as far as the file says it; empty for a step without one."""
        return paths.table(self.name, self.target.table) if self.target is not None else ""

    def target_names(self, paths: Paths) -> set[str]:
        """Path and catalog name of the target, as far as the file says them."""
        named = self.target.name if self.target is not None else None
        return {place for place in (self.target_path(paths), named) if place}

    @property
    def further_sinks(self) -> dict[str, SinkKind]:
        """Every sink but the target, by its title: what reports call it, and its place is noted
        under."""
        found: dict[str, SinkKind] = {}
        for sink in self.sinks:
            if sink is not self.target:
                twin = sink.title in found
                title = f"{sink.title} ({len(found) + 1})" if twin else sink.title
                # In another mode the newest batch stays: groups need no order.
                append = self.output_mode == "append"
                found[title] = sink.ranked(self.newest_first) if append else sink
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
    def output_mode(self) -> OutputMode:
        """Spark's output mode: what the sinks ask for, else `append`."""
        return next((sink.output_mode for sink in self.sinks if sink.output_mode), "append")

    @property
    def replaces_rows(self) -> bool:
        """True where a row of the target may give way to a later one."""
        ranked = self.remembers and self.dedup is not None and self.dedup.replaces
        replaced = bool(self.groups) or self.output_mode != "append"
        return ranked or (self.target is not None and replaced)

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
    def _check_groups(self) -> "Step":
        check_groups(self)
        return self

    @model_validator(mode="after")
    def _check_target(self) -> "Step":
        check_target(self)
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
        check_sinks(self)
        return self

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
