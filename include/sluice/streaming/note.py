"""What the target's commit of a batch carries: all that a replay has to know of it."""

from dataclasses import asdict, dataclass, field, fields

from ..errors import TerminalError
from ..report import Counts
from ..spark.tables import Commit
from .survey import Verdict
from .written import Given, Written


@dataclass(frozen=True)
class Note:
    """A batch as its commit tells of it.

    `counts`: of everything but the write that the commit itself is. `given`: of that write.
    `oldest`, `newest`: event times, epoch microseconds. Of a step with `groups`: `versions` of its
    inputs and digest of the `query` that its table was computed from; `why` all of it was, empty
    where only the touched groups were; rows and bytes that were `scanned` for it, and `size` of all
    files of the inputs, bytes; the version of the table up to which was `seen` what others did.
    """

    run_id: str
    definition: str
    counts: Counts
    rules: dict[str, Verdict]
    inputs: dict[str, Counts] = field(default_factory=dict)
    given: Given = Given()
    watermark_ms: int = 0
    oldest: int | None = None
    newest: int | None = None
    lateness: list[int] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    query: str = ""
    why: str = ""
    scanned: tuple[int, int] = (0, 0)
    size: int = 0
    seen: int = 0

    def as_metadata(self) -> dict:
        """The note as JSON holds it."""
        inputs = {name: counts.model_dump() for name, counts in self.inputs.items()}
        told = {**asdict(self), "counts": self.counts.model_dump(), "inputs": inputs}
        unsaid = () if self.versions else ("versions", "query", "why", "scanned", "size", "seen")
        unsaid = unsaid if inputs else (*unsaid, "inputs")
        return {name: one for name, one in told.items() if name not in unsaid}

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
        of_inputs = {n: Counts.model_validate(one) for n, one in told.get("inputs", {}).items()}
        return cls(**{**told, **read, "inputs": of_inputs})

    def total(self, written: Written) -> Counts:
        """The counts of the whole batch."""
        return self.counts + Counts(
            written=written.inserted,
            duplicate=written.duplicate,
            replaced=written.replaced,
            removed=written.removed,
            updated=written.updated,
        )
