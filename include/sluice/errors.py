"""Every error a user can meet: what, where, the value, what to do next; and the exit code that
tells Airflow whether to retry.
"""

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process says to whoever started it (documented in the README)."""

    DONE = 0
    NOTHING_NEW = 3
    STOPPED_BY_RULE = 4
    TRANSIENT = 5
    TERMINAL = 6


def suggest(word: str, known: Iterable[str]) -> str:
    """`Did you mean 'x'? ` with the name nearest to a word; empty where none is near.

    Case does not count. The space at its end is for what follows.
    """
    import difflib

    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"Did you mean {by_lower[near[0]]!r}? " if near else ""


class SluiceError(Exception):
    """An error with a place and a next step.

    Args:
        what: one sentence.
        where: file, field, table or URL.
        value: what was found there.
        do: what to write or run next.
        place: where in the file it stands: `line 8, step pages`.
    """

    exit_code = ExitCode.TERMINAL

    def __init__(
        self, what: str, *, where: str = "", value: object = None, do: str = "", place: str = ""
    ) -> None:
        self.what, self.where, self.value, self.do = what, where, value, do
        self.place = place
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        got = f" (got {self.value!r})" if self.value is not None else ""
        place = f", {self.place}" if self.place else ""
        said = f"{where}{self.what}{got}{place}"
        ended = said if said.endswith(("?", ".")) else f"{said}."
        return f"{ended} {self.do}".rstrip()


class TerminalError(SluiceError):
    """Raised when trying again cannot help."""


class TransientError(SluiceError):
    """Raised when trying again later may help."""

    exit_code = ExitCode.TRANSIENT


class SpecError(TerminalError):
    """Raised when a pipeline file, its SQL or its Python says something that cannot be run."""


class SourceError(TerminalError):
    """Raised when a source cannot be read as declared."""


class SinkError(TerminalError):
    """Raised when a sink refuses rows or cannot be written as declared."""


class PreflightError(TerminalError):
    """Raised when versions, jars or a checkpoint do not fit what the step asks for."""


class CheckpointBusy(TransientError):
    """Raised when another live run holds the checkpoint's lease."""


class LeaseLost(TransientError):
    """Raised when this run's lease was taken over: it must not write again."""


class ParentLost(TransientError):
    """Raised when the process that asked for this run is gone, so that nobody waits for it and a
    second try may be on its way."""


class UnbalancedReport(TerminalError):
    """Raised when the fates of the rows do not add up to the rows read."""


class RuleStop(SluiceError):
    """Raised when a `stop` rule refuses a batch before anything of it was written."""

    exit_code = ExitCode.STOPPED_BY_RULE
