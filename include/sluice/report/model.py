"""RunReport: the story of one run, whose numbers must add up."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from ..errors import ExitCode, UnbalancedReport


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Counts(_Record):
    """Rows by fate: each number is measured by what did it, none is what is left over.

    Two lines add up: `read = malformed + filtered + entered` says what became of each record, and
    `malformed + made = written + quarantined + duplicate + late` what became of each row. A
    transform that makes no rows has `made = entered`, and the two are one line.
    """

    read: int = 0
    malformed: int = 0
    """Records no parser could read: part of `quarantined` (first copy) or `duplicate` (copies)."""
    filtered: int = 0
    """Records that the transform's WHERE left out."""
    entered: int = 0
    """Records that took part in the transform."""
    made: int = 0
    """Rows the transform made of them, with those its operators dropped as late."""
    written: int = 0
    quarantined: int = 0
    duplicate: int = 0
    late: int = 0
    replaced: int = 0
    """Rows of the table that lost against a row of this run: part of `duplicate`, one for one."""
    late_merged: int = 0
    """Rows behind the watermark that went through the MERGE like all others: told apart, each
    also has its fate."""
    removed: int = 0
    """Rows of a replaced range that went when these came."""

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, value: object) -> object:
        """Reports of before say `parsed` for what enters the transform, and `entered` for what
        it makes; what its WHERE left out they do not tell."""
        if isinstance(value, dict) and "parsed" in value:
            value = {**value, "made": value.get("entered", 0), "entered": value["parsed"]}
            del value["parsed"]
        return value

    def __add__(self, other: "Counts") -> "Counts":
        sums = {name: getattr(self, name) + getattr(other, name) for name in Counts.model_fields}
        return Counts(**sums)

    @property
    def fated(self) -> int:
        """Rows that have one of the four fates behind the transform."""
        return self.written + self.quarantined + self.duplicate + self.late

    @property
    def balanced(self) -> bool:
        """True when both lines add up and no number is negative."""
        whole = self.read == self.malformed + self.filtered + self.entered
        negative = any(getattr(self, name) < 0 for name in Counts.model_fields)
        return whole and self.malformed + self.made == self.fated and not negative

    @property
    def line(self) -> str:
        """`1,204 read = 1,180 written + 9 quarantined + 13 duplicate + 2 late + 0 filtered`, or
        two such lines behind a transform that makes rows."""
        fates = (
            f"{self.written:,} written + {self.quarantined:,} quarantined + "
            f"{self.duplicate:,} duplicate + {self.late:,} late"
        )
        if self.made == self.entered:
            return f"{self.read:,} read = {fates} + {self.filtered:,} filtered"
        records = f"{self.malformed:,} malformed + {self.filtered:,} filtered"
        made = f"{self.made:,} made + {self.malformed:,} malformed"
        return f"{self.read:,} read = {records} + {self.entered:,} entered; {made} = {fates}"

    def check(self, where: str) -> None:
        """Raise UnbalancedReport when a row has no fate, or two, or a number is negative."""
        if not self.balanced:
            raise UnbalancedReport(
                "the fates of the rows do not add up to the rows read",
                where=where,
                value=self.model_dump(),
                do="Keep the landing files and the checkpoint, and report this as a defect",
            )


COMMITS = "commits of "
"""How the place of a table begins in `ranges`."""


def merge_ranges(
    first: dict[str, tuple[int, int]], second: dict[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Ranges from the first to the last of both, by place."""
    both = {
        place: (min(first[place][0], second[place][0]), max(first[place][1], second[place][1]))
        for place in first.keys() & second.keys()
    }
    return {**first, **second, **both}


class Outcome(StrEnum):
    """A rule that could not be evaluated is not a pass."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "could not evaluate"


class RuleResult(_Record):
    """What one rule found over a run."""

    name: str
    type: str
    level: Literal["row", "table"]
    on_fail: Literal["warn", "quarantine", "stop"]
    outcome: Outcome
    evaluated: int | None = None
    """Rows the rule looked at (row level: those not skipped for NULL)."""
    unexpected: int | None = None
    observed: str | None = None
    """What Great Expectations observed, as text (table level)."""
    message: str = ""
    samples: list[str] = []
    """A few values that broke the rule; none of columns marked `pii`."""


class BatchReport(_Record):
    """One micro-batch."""

    batch_id: int
    key: str = ""
    """Pipeline, step, checkpoint generation and batch: no other batch ever has it."""
    counts: Counts
    replayed: bool = False
    """True when a crash came after its commit: the counts were read back from the commit."""
    watermark_ms: int | None = None
    """The watermark in force in this batch, epoch milliseconds."""
    event_time_min: datetime | None = None
    event_time_max: datetime | None = None
    files: int = 0
    ranges: dict[str, tuple[int, int]] = {}
    """Offsets (or commits of a table), from and until (not included), by `topic/partition` (or `commits of <table>`)."""
    delivered: dict[str, int] = {}
    """Rows given to each sink beside the target."""
    seconds: float = 0.0
    conflicts: int = 0
    """Keys of which a copy had other content, in the batch or in the table."""
    overtaken: int = 0
    """Keys of which a row in the table ranks behind one that came later, although the step promises `first_arrives_first`."""
    warnings: list[str] = []
    """What a person should know of this batch."""
    conflict_samples: list[str] = []
    """The first and the last of these keys; none where a key column is marked `pii`."""
    lateness: list[int] = []
    """Rows by how far they were behind the newest row of earlier batches, one number a bar (see report/lateness.py); empty before anything was seen."""


class StepReport(_Record):
    """One step of the pipeline."""

    name: str
    target: str
    quarantine: str
    counts: Counts = Counts()
    batches: list[BatchReport] = []
    rules: list[RuleResult] = []
    offsets_before: int | None = None
    """Newest committed batch before the run."""
    offsets_after: int | None = None
    watermark_before_ms: int | None = None
    watermark_after_ms: int | None = None
    files_read: int = 0
    bytes_read: int = 0
    ranges: dict[str, tuple[int, int]] = {}
    """From the first to the last of each of the batches' ranges."""
    delivered: dict[str, int] = {}
    """Rows given to each sink beside the target, summed over batches."""
    conflicts: int = 0
    """Keys that came with differing content, summed over batches."""
    overtaken: int = 0
    conflict_samples: list[str] = []
    lateness: list[int] = []
    """Rows by lateness, summed over batches."""
    within: str | None = None
    """The dedup's horizon, as written."""
    left_for_next_run: bool = False
    """True when the time budget ended the run before the backlog."""
    versions: dict[str, int] = {}
    """Delta version of each table after the run: target, quarantine, late."""
    warnings: list[str] = []
    timings: dict[str, float] = {}
    """Seconds by phase."""


class RunReport(_Record):
    """One run of a pipeline: what came in, where every row went, what it cost."""

    schema_version: int = 1
    pipeline: str
    run_id: str
    kind: Literal["scheduled", "backfill", "trial"] = "scheduled"
    """`scheduled` drains what is new, whoever started it; `backfill` covers a window; `trial` has a root of its own."""
    window: str | None = None
    started: datetime
    ended: datetime
    status: Literal["done", "nothing new", "stopped by a rule", "failed", "out of time"]
    exit_code: ExitCode = ExitCode.DONE
    error: str | None = None
    steps: list[StepReport] = []
    seconds_up: float = 0.0
    """From the start of the process to the report."""
    core_seconds: float = 0.0
    """CPU seconds of the whole process tree, the JVM included."""
    spark: dict[str, str] = {}
    """Version, master and profile."""

    @property
    def counts(self) -> Counts:
        """The sum over all steps."""
        return sum((step.counts for step in self.steps), Counts())

    @property
    def failed_rules(self) -> list[RuleResult]:
        """Rules that did not pass, could-not-evaluate included."""
        return [
            rule for step in self.steps for rule in step.rules if rule.outcome is not Outcome.PASSED
        ]

    @property
    def blocks(self) -> bool:
        """True when nothing downstream may run: a failed run, an unbalanced one, a `stop` rule that did not pass, or any rule that could not be evaluated."""
        stopped = any(
            rule.on_fail == "stop" or rule.outcome is Outcome.ERROR for rule in self.failed_rules
        )
        return (
            stopped
            or self.status in ("failed", "stopped by a rule")
            or not all(step.counts.balanced for step in self.steps)
        )

    def check(self) -> None:
        """Raise UnbalancedReport when a batch, a step or the sum of batches does not add up."""
        for step in self.steps:
            for batch in step.batches:
                batch.counts.check(f"{self.pipeline}.{step.name} batch {batch.batch_id}")
            step.counts.check(f"{self.pipeline}.{step.name}")
