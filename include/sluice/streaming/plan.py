"""What a batch of a step needs to know: fixed before the first batch, the same for all of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from ..quality.malformed import MAX_MALFORMED, judge_malformed
from ..quality.rules import RowRule, row_result
from ..report import RuleResult
from ..sources import Inputs
from ..spark.columns import BATCH_KEY, MALFORMED, RESCUED, SOURCE, UNREADABLE, col, own_columns
from ..spark.custom_state import Declared
from ..spark.tables import Transaction
from ..spec import MalformedLimit, RuleSpec, Step
from ..spec.verifiable import kept_apart
from .classify import refusal_columns
from .copies import Copies
from .outlet import Outlet
from .refresh import Refresh
from .survey import Lookout, Survey, Verdict
from .target import Target


@dataclass(frozen=True)
class Rules:
    """The rules of a step: row-level ones as columns, table-level ones for Great Expectations.

    `row`: those of its inputs, then from number `first` on its own. `asked`: how many the file
    says, of rows or not. `hidden`: columns whose values are never shown. `limit`: on malformed
    records.
    """

    row: list[RowRule]
    table: list[RuleSpec]
    hidden: frozenset[str] = frozenset()
    limit: MalformedLimit | None = None
    first: int = 0
    asked: int = 0

    @property
    def own(self) -> list[RowRule]:
        """Those on the rows that the step makes."""
        return self.row[self.first :]

    @property
    def place(self) -> tuple[int, int]:
        """The number of the first of them, and how many a row has room for."""
        return self.first, max(self.asked, len(self.row))

    def verdicts(self, survey: Survey, lost: Iterable[str] = ()) -> dict[str, Verdict]:
        """A survey's counts of the row-level rules by their names, and of the other reasons for
        which rows were refused by theirs, which no rule may have. `lost`: unreadable files."""
        told = dict(zip([rule.name for rule in self.row], survey.rules, strict=True))
        if paths := sorted(lost):
            told[UNREADABLE] = (len(paths), len(paths), [paths[0], *paths[1:][-1:]])
        if self.limit is not None:
            samples = survey.refusals[MALFORMED][-1] if survey.malformed else []
            told[MAX_MALFORMED] = (survey.read, survey.malformed, samples)
        return told | survey.refusals

    def results(self, verdict_of: Callable[[str], Verdict]) -> list[RuleResult]:
        """What the row-level rules, and the limit, found by verdicts of these names."""
        found = [row_result(rule, *verdict_of(rule.name)) for rule in self.row]
        if self.limit is not None:
            found.append(judge_malformed(self.limit, *verdict_of(MAX_MALFORMED)))
        return found

    @property
    def stops(self) -> list[RuleSpec]:
        """Table-level rules that refuse a batch."""
        return [rule for rule in self.table if rule.on_fail == "stop"]


@dataclass(frozen=True)
class Place:
    """Where a step keeps things: its checkpoint, and its tables of refused and late rows.

    `app_id`: pipeline, step and checkpoint generation, the same for every batch.
    `folder`: of the pipeline's YAML. `root`: below which relative paths lie.
    """

    name: str
    app_id: str
    checkpoint: str
    quarantine: str
    late: str
    folder: Path
    root: str


@dataclass(frozen=True)
class Plan:
    """A step as its batches are worked off.

    `columns`: the user's. `schema`: of the rows that the target and the sinks get, the system's
    columns among them. `copies`: None where the target does not remember keys. `late`: what
    becomes of rows behind the watermark. `delay_ms`: of the watermark, 0 without one.
    `open_batch`: planned by an earlier try, which may have written of it. `definition`: digest of
    what decides fates. `stateful`: Spark keeps something from batch to batch, so a batch must be
    read, and only once. `gathers`: the transform does, so that a batch without records may make
    rows. `declared`: a state of the user's own. `refresh`: how a step with `groups` is computed.
    """

    step: Step
    place: Place
    inputs: Inputs
    columns: StructType
    schema: StructType
    rules: Rules
    target: Target
    copies: Copies | None
    late: str
    delay_ms: int
    open_batch: int | None
    definition: str
    stateful: bool
    gathers: bool
    declared: Declared = field(default_factory=Declared)
    refresh: Refresh | None = None

    @property
    def outlet(self) -> Outlet:
        """What the further sinks are given."""
        return Outlet(
            self.target.path,
            self.target.replaces,
            self.schema,
            own_columns(self.columns.names),
            self.step.key_names,
            self.place.folder,
            self.place.root,
            self.rules.hidden,
            self.place.name,
            whole=self.step.output_mode == "complete",
            mirrored=bool(self.step.groups),
        )

    @property
    def apart(self) -> frozenset[str]:
        """Why not all of its batches can be read once more as one; see `kept_apart`."""
        state = {"state"} if self.stateful and self.target.exists else set()
        return kept_apart(self.step) | state

    @property
    def generation(self) -> str:
        """The checkpoint's, as batch keys begin with it."""
        return self.place.app_id.removeprefix("sluice/")

    @property
    def held_in_state(self) -> bool:
        """True where Spark's state store remembers the keys."""
        return self.step.dedup is not None and self.step.dedup.memory == "state"

    @property
    def table(self) -> str:
        """The table at which runs take turns."""
        return self.target.path or self.place.quarantine

    @property
    def refuses_unknown_fields(self) -> bool:
        """True where a field nobody declared stops the run."""
        return any(source.refuses_unknown for source in self.step.sources)

    def look_out(self, watermark_ms: int) -> Lookout:
        """What the first pass over a batch counts."""
        newest = watermark_ms + self.delay_ms if watermark_ms else None
        rules, reasons = self.rules, refusal_columns(self.step)
        return Lookout(
            rules.row,
            reasons,
            watermark_ms,
            newest,
            rules.hidden,
            self.gathers or self.refresh is not None,
            tuple(self.step.streams) if self.step.inputs else (),
        )

    def match(self, oldest: int | None, newest: int | None) -> str:
        """SQL under which a row `s` of a batch is a copy of row `t` of the table; empty where the
        table does not remember keys, or the batch has no row to write."""
        if self.copies is None or oldest is None or newest is None:
            return ""
        return self.copies.match(oldest, newest)

    @property
    def where(self) -> str:
        """The step, for messages."""
        return self.place.name

    def batch_key(self, number: int) -> str:
        """What no other batch ever has."""
        return f"{self.generation}/{number}"

    def transaction(self, number: int, note: dict | None = None) -> Transaction:
        """The key under which the target gets a batch."""
        return Transaction(self.place.app_id, number, note or {})

    def stamp(self, rows: DataFrame, number: int, run_id: str, *more: str) -> DataFrame:
        """The columns of the target: the user's, `_rescued` where it is kept, by whom and from
        where the row came, and `more`."""
        kept = [RESCUED] if self.step.keeps_rescued else []
        system = [
            F.lit(run_id).alias("_run_id"),
            F.lit(number).cast("bigint").alias("_batch_id"),
            F.lit(self.batch_key(number)).alias(BATCH_KEY),
            F.col(SOURCE),
            F.lit(datetime.now(UTC)).alias("_ingested_at"),
        ]
        return rows.select(*[col(c) for c in self.columns.names], *kept, *system, *more)


def kept_columns(step: Step, columns: StructType) -> StructType:
    """The user's columns, and `_rescued` where it is kept beside them."""
    rescued = [StructField(RESCUED, StringType())] if step.keeps_rescued else []
    return StructType([*columns.fields, *rescued])


def digest_definition(step: Step, folder: Path) -> str:
    """What decides the fate of a row, as one text: source, transform with its file, event time,
    dedup and rules."""
    parts = {"inputs" if step.inputs else "source", "transform", "event_time", "dedup", "rules"}
    parts |= {"groups"} if step.groups else set()
    said = step.model_dump_json(include=parts)
    files = [folder / code.partition(":")[0] for code in step.transforms]
    text = b"".join(file.read_bytes() for file in files if file.is_file())
    return sha256(said.encode() + b"\0" + text).hexdigest()[:16]
