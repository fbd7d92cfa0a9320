"""RunReport: the story of one run, whose numbers must add up."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from ..errors import ExitCode
from .counts import Counts, Record
from .deliveries import Delivered, Undelivered
from .held import HeldInState
from .refreshed import RefreshReport
from .verified import Verification

Status = Literal[
    "done", "nothing new", "stopped by a rule", "failed", "out of time", "undelivered", "held back"
]
"""How a run ended; `undelivered`: every row has its fate, and a further sink lacks some; `held
back`: another run that is at work holds the checkpoint, or the table."""


class Outcome(StrEnum):
    """A rule that could not be evaluated is not a pass."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "could not evaluate"


class RuleResult(Record):
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

    @property
    def unmet(self) -> bool:
        """True where no value came to break or keep it: that is no news of the rows."""
        return self.outcome is Outcome.PASSED and self.evaluated == 0


class Refusal(Record):
    """Why rows were refused. A row may have several reasons, and of copies each is counted."""

    reason: str
    """`malformed`, `null_key`, `null_time`, `future_time`, `unreadable_file`, or a rule's name."""
    rows: int
    samples: list[str] = []
    """The first and the last text of such a row; none of columns marked `pii`."""


class InputReport(Record):
    """One of several inputs of a step."""

    name: str
    static_version: int | None = None
    """Version of a table that is read as a whole; None of a stream."""
    counts: Counts = Counts()
    """Of its records: read, malformed, rejected, filtered, entered."""
    watermark_ms: int | None = None
    """How far it has moved, over all runs; None where it has no watermark, or no row came yet."""
    moved_by: str = ""
    """The run whose rows moved it last."""
    waits: bool = False
    """It has a watermark, and no row came yet: nothing can be closed before one does."""
    holds_back: bool = False
    """It is the slowest, and what is held is closed when all inputs have passed it."""


class BatchReport(Record):
    """One micro-batch."""

    batch_id: int
    key: str = ""
    """Pipeline, step, checkpoint generation and batch: no other batch ever has it."""
    counts: Counts
    inputs: dict[str, Counts] = {}
    """Of the records of each, in a step with several inputs."""
    replayed: bool = False
    """True when a crash came after its commit: the counts were read back from the commit."""
    watermark_ms: int | None = None
    """The watermark in force in this batch, epoch milliseconds."""
    event_time_min: datetime | None = None
    event_time_max: datetime | None = None
    files: int = 0
    ranges: dict[str, tuple[int, int]] = {}
    """Offsets (or commits of a table), from and until (not included), by `topic/partition` (or
    `commits of <table>`)."""
    delivered: dict[str, int] = {}
    """Rows given to each sink, in a step without a target."""
    seconds: float = 0.0
    timings: dict[str, float] = {}
    """Seconds of its parts."""
    conflicts: int = 0
    """Keys of which a copy had other content, in the batch or in the table."""
    overtaken: int = 0
    """Keys of which a row in the table ranks behind one that came later, although the step
    promises `first_arrives_first`."""
    refresh: RefreshReport | None = None
    """Of a step with `groups`: what became of them."""
    warnings: list[str] = []
    """What a person should know of this batch."""
    conflict_samples: list[str] = []
    """The first and the last of these keys; none where a key column is marked `pii`."""
    lateness: list[int] = []
    """Rows by how far they were behind the newest row of earlier batches, one number a bar (see
    report/lateness.py); empty before anything was seen."""

    def identity(self, step: str) -> str:
        """Its key; its step and number in a report of before batches had keys."""
        return self.key or f"{step} {self.batch_id}"


class StepReport(Record):
    """One step of the pipeline."""

    name: str
    target: str
    quarantine: str
    counts: Counts = Counts()
    batches: list[BatchReport] = []
    rules: list[RuleResult] = []
    refusals: list[Refusal] = []
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
    """Rows given to each sink beside the target in this run, of whichever batches."""
    deliveries: list[Delivered] = []
    undelivered: list[Undelivered] = []
    """After the run, of sinks that follow a target."""
    conflicts: int = 0
    """Keys that came with differing content, summed over batches."""
    overtaken: int = 0
    conflict_samples: list[str] = []
    lateness: list[int] = []
    """Rows by lateness, summed over batches."""
    inputs: list[InputReport] = []
    """Of a step with several."""
    refresh: RefreshReport | None = None
    """Of a step with `groups`: what became of them, summed over batches."""
    verified: list[Verification] = []
    """Of a run that verifies: what its tables hold against what its inputs give."""
    held: list[HeldInState] = []
    """What its transform keeps in state after the run: rows that came and are in no table yet."""
    within: str | None = None
    """The dedup's horizon, as written."""
    left_for_next_run: bool = False
    """True when the time budget ended the run before the backlog."""
    versions: dict[str, int] = {}
    """Delta version of each table after the run: target, quarantine, late."""
    warnings: list[str] = []
    timings: dict[str, float] = {}
    """Seconds by phase."""


class RunReport(Record):
    """One run of a pipeline: what came in, where every row went, what it cost."""

    schema_version: int = 2
    """1: `parsed` stands for `entered`, and `entered` for `made`."""
    pipeline: str
    run_id: str
    kind: Literal["scheduled", "backfill", "trial", "delivery", "verification", "redo"] = (
        "scheduled"
    )
    """`scheduled` drains what is new, whoever started it; `backfill` covers a window; `trial` has
    a root of its own; `delivery` only sends further sinks what they lack; `verification` compares
    tables with what their inputs give."""
    window: str | None = None
    started: datetime
    ended: datetime
    status: Status
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
    def told(self) -> set[str]:
        """The batches and deliveries that it tells of, whatever the step was named then."""
        batches = {b.identity(step.name) for step in self.steps for b in step.batches}
        return batches | {s.identity for step in self.steps for s in step.deliveries}

    @property
    def undelivered(self) -> list[Undelivered]:
        """What further sinks lack."""
        return [lack for step in self.steps for lack in step.undelivered if lack.batches]

    @property
    def failed_rules(self) -> list[RuleResult]:
        """Rules that did not pass, could-not-evaluate included."""
        return [
            rule for step in self.steps for rule in step.rules if rule.outcome is not Outcome.PASSED
        ]

    @property
    def blocks(self) -> bool:
        """True when nothing downstream may run: a failed run, an unbalanced one, a `stop` rule
        that did not pass, or any rule that could not be evaluated."""
        stopped = any(
            rule.on_fail == "stop" or rule.outcome is Outcome.ERROR for rule in self.failed_rules
        )
        return (
            stopped
            or self.status in ("failed", "stopped by a rule", "held back")
            or not all(step.counts.balanced for step in self.steps)
        )

    def check(self) -> None:
        """Raise UnbalancedReport when a batch, a step or the sum of batches does not add up."""
        for step in self.steps:
            for batch in step.batches:
                batch.counts.check(f"{self.pipeline}.{step.name} batch {batch.batch_id}")
            step.counts.check(f"{self.pipeline}.{step.name}")
