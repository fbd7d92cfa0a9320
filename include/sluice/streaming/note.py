"""What the target's commit of a batch carries: all that a replay has to know of it."""

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING

from ..errors import TerminalError
from ..report import Counts
from ..spark.tables import Commit
from .survey import Survey
from .written import Given, Written

if TYPE_CHECKING:
    from .plan import Plan

Verdict = tuple[int, int, list[str]]
"""(rows evaluated, rows unexpected, samples) of one rule."""


@dataclass(frozen=True)
class Note:
    """A batch as its commit tells of it.

    `counts`: of everything but the write that the commit itself is. `given`: of that write.
    `oldest`, `newest`: event times, epoch microseconds.
    """

    run_id: str
    definition: str
    counts: Counts
    rules: dict[str, Verdict]
    given: Given = Given()
    watermark_ms: int = 0
    oldest: int | None = None
    newest: int | None = None
    lateness: list[int] = field(default_factory=list)

    @classmethod
    def of(
        cls, plan: "Plan", run_id: str, watermark_ms: int, survey: Survey, counts: Counts
    ) -> "Note":
        """What is known of a surveyed batch before the target is written."""
        return cls(
            run_id,
            plan.definition,
            counts,
            plan.rules.verdicts(survey),
            watermark_ms=watermark_ms,
            oldest=survey.oldest,
            newest=survey.newest,
            lateness=survey.lateness,
        )

    def as_metadata(self) -> dict:
        """The note as JSON holds it."""
        return {**asdict(self), "counts": self.counts.model_dump()}

    @classmethod
    def from_commit(cls, commit: Commit, table: str) -> "Note":
        """The note of a commit. Raises TerminalError where its file is cleaned from the log."""
        told = {f.name: commit.note[f.name] for f in fields(cls) if f.name in commit.note}
        if "given" not in told:
            raise TerminalError(
                "a batch is in the table, but no commit of its log tells the counts: it was "
                "cleaned away, or another version wrote it",
                where=table,
                do="Take the batch as done: remove the step's checkpoint, so that the source is "
                "read again; keys in the table keep its rows from being doubled",
            )
        read = {"counts": Counts.model_validate(told["counts"]), "given": Given(**told["given"])}
        return cls(**{**told, **read})

    def total(self, written: Written) -> Counts:
        """The counts of the whole batch."""
        return self.counts + Counts(
            written=written.inserted,
            duplicate=written.duplicate,
            replaced=written.replaced,
            removed=written.removed,
        )
