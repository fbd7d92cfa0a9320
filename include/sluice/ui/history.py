"""The last runs of a pipeline, in lines for its page: those that left a report, and those that
Airflow knows of and that left none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ..orchestration.named import paths_of
from ..report.counts import FATES
from ..report.history import RunSummary, list_runs
from .lookup import SilentRun, list_silent_runs

MAX_RUNS = 30


@dataclass(frozen=True)
class Segment:
    """The part of a bar that is one fate's: percent of the widest bar."""

    fate: str
    x: float
    width: float


@dataclass(frozen=True)
class Entry:
    """A line of the history: a run with its bar, or idle runs in a row, or a run that ended
    without a report. `moment`: it started, or the last of them."""

    moment: datetime
    run: RunSummary | None = None
    bar: tuple[Segment, ...] = ()
    idle: int = 0
    since: datetime | None = None
    silent: SilentRun | None = None


def read_history(pipeline: str) -> list[Entry]:
    """The last 30 lines of a pipeline's history, newest first."""
    runs = list_runs(paths_of(pipeline).reports(), MAX_RUNS)
    since = runs[-1].started if len(runs) == MAX_RUNS else None
    told = {run.run_id for run in runs}
    silent = [run for run in list_silent_runs(pipeline, since) if run.run_id not in told]
    widest = max((_rows(run) for run in runs), default=0)
    entries = [
        Entry(run.started, idle=1, since=run.started)
        if run.idle
        else Entry(run.started, run=run, bar=_draw(run, widest))
        for run in runs
    ]
    entries += [
        Entry(run.moment, idle=1, since=run.moment) if run.idle else Entry(run.moment, silent=run)
        for run in silent
    ]
    return _gather(sorted(entries, key=lambda entry: entry.moment, reverse=True))[:MAX_RUNS]


def _gather(entries: Iterable[Entry]) -> list[Entry]:
    """Idle runs that follow each other become one line."""
    lines: list[Entry] = []
    for entry in entries:
        if entry.idle and lines and lines[-1].idle:
            last = lines[-1]
            lines[-1] = Entry(last.moment, idle=last.idle + 1, since=entry.since)
        else:
            lines.append(entry)
    return lines


def _rows(run: RunSummary) -> int:
    return sum(max(getattr(run.counts, fate), 0) for fate in FATES)


def _draw(run: RunSummary, widest: int) -> tuple[Segment, ...]:
    """A bar as wide as its rows are many; a fate that has rows is never too thin to be seen."""
    x, segments = 0.0, []
    for fate in FATES:
        if (rows := getattr(run.counts, fate)) > 0:
            width = max(94 * rows / widest, 1.2)
            segments.append(Segment(fate, round(x, 2), round(width, 2)))
            x += width
    return tuple(segments)
