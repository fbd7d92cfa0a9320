"""How a run ended: status, exit code and error belong together."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..errors import CheckpointBusy, ExitCode, RuleStop, SluiceError, TransientError
from .deliveries import Undelivered
from .model import Status
from .units import format_amount, format_time
from .verified import Verification, describe_difference


@dataclass(frozen=True)
class Ending:
    """The end of a run. `stored`: its report is kept in any case; else only where a step has begun:
    nothing was new, or another run that is at work held a checkpoint."""

    status: Status = "done"
    exit_code: ExitCode = ExitCode.DONE
    error: str | None = None
    stored: bool = True

    @classmethod
    def of(cls, error: SluiceError) -> "Ending":
        """The end that an error is."""
        status: Status = "failed"
        if isinstance(error, RuleStop):
            status = "stopped by a rule"
        elif isinstance(error, CheckpointBusy):
            status = "held back"
        said = str(error).replace("\n  ", " ")  # several mistakes of a file: a line each there
        return cls(status, error.exit_code, said, not isinstance(error, CheckpointBusy))

    @classmethod
    def unforeseen(cls, error: Exception) -> "Ending":
        """The end by an error nobody foresaw: it is worth one more try."""
        return cls.of(
            TransientError(
                f"unexpected {type(error).__name__}: {' '.join(str(error).split())[:400]}",
                do="Run again; if it fails the same way, the task's log has the rest",
            )
        )

    @classmethod
    def of_steps(
        cls, failures: Mapping[str, Exception], before: Mapping[str, set[str]]
    ) -> "Ending":
        """The end of a run of whose steps some failed: the worst of them decides whether to try
        again.

        Args: before: step -> those it waits for; of the pipeline, in the order of its file.
        """
        ends = {step: _end_of(failures[step]) for step in before if step in failures}
        worst = max(ends.values(), key=lambda end: end.exit_code)
        if len(before) == 1:
            return worst
        told = [f"step {step}: {end.error}" for step, end in ends.items()]
        held = [step for step, earlier in before.items() if earlier & failures.keys()]
        if held:
            told.append(f"Not started, because they wait for it: {', '.join(held)}.")
        return replace(worst, error="\n".join(told))

    @classmethod
    def behind(cls, lacking: list[Undelivered]) -> "Ending":
        """The end of a run whose rows all have their fate; where a further sink lacks some of them
        it is worth one more try, unless only a person can mend it."""
        if not lacking:
            return DONE
        person = any(sink.needs_person for sink in lacking)
        code = ExitCode.TERMINAL if person else ExitCode.TRANSIENT
        return cls("undelivered", code, " ".join(map(describe_lack, lacking)))

    @classmethod
    def verified(cls, found: list[Verification]) -> "Ending":
        """The end of a run that compared tables with what their inputs give."""
        differing = [describe_difference(one) for one in found if not one.equal]
        return cls("failed", ExitCode.TERMINAL, "\n".join(differing)) if differing else DONE

    @property
    def is_complete(self) -> bool:
        """True where nothing is left that this run was to do."""
        return self.status in ("done", "nothing new", "undelivered")


def _end_of(error: Exception) -> Ending:
    return Ending.of(error) if isinstance(error, SluiceError) else Ending.unforeseen(error)


def describe_lack(lack: Undelivered) -> str:
    """What a sink lacks, since when and why, in a sentence."""
    rows, more = format_amount(lack.rows, "row"), "" if lack.batches == 1 else "es"
    said = f": {lack.said}" if lack.said else "."
    since = format_time(lack.since)
    return f"{lack.sink} lacks {rows} of {lack.batches:,} batch{more} since {since}{said}"


DONE = Ending()
NOTHING_NEW = Ending("nothing new", ExitCode.NOTHING_NEW, stored=False)
OUT_OF_TIME = Ending("out of time")
UNFINISHED = Ending(
    "out of time",
    ExitCode.TRANSIENT,
    "the time budget ended the backfill before its range was done. Run it again: Airflow's next "
    "try goes on where this one stopped; or raise `budget`, or cut the range",
)
"""Of a backfill, which no scheduled run goes on with."""
