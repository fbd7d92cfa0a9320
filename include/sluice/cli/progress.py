"""How far a run is: bars on a terminal, a line a batch elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from ..report import Advance, Progress
from .app import err

terminal = Console(stderr=True)
_SPEED_SECONDS = 60.0
"""Over which the time left is estimated."""


class _Rows(ProgressColumn):
    """Records read so far, and how many a second since the step began."""

    def render(self, task: Task) -> Text:
        rows, seconds = task.fields["rows"], time.monotonic() - task.fields["began"]
        return Text(f"{rows:,} rows, {rows / seconds:,.0f}/s" if rows and seconds > 0 else "")


@contextmanager
def show_progress() -> Iterator[Progress]:
    """A bar a step on a terminal, which moves within a batch as well; a line a batch elsewhere.

    The percentage is of what waits in the unit of the source, so its end is known at the start.
    """
    if not terminal.is_terminal:
        yield Progress(_tell_batch)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>5.1f} %"),
        _Rows(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=terminal, speed_estimate_period=_SPEED_SECONDS) as bars:
        yield Progress(_Steps(bars).show, each_second=True)


def _tell_batch(advance: Advance) -> None:
    if advance.batch is not None:
        counts = f"batch {advance.batch.batch_id}: {advance.batch.counts.line}"
        err.print(f"{advance.step}: {advance.percent:5.1f} %, {counts}")


class _Steps:
    """The bars of the steps that have begun; before them one that says that Spark starts."""

    def __init__(self, bars: Bars) -> None:
        self.bars, self._lock = bars, Lock()
        self.tasks = {"": self._add("starting Spark", None)}

    def show(self, advance: Advance) -> None:
        with self._lock:  # steps that run at once are told of by threads of their own
            if "" in self.tasks:
                self.bars.remove_task(self.tasks.pop(""))
            if advance.step not in self.tasks:
                self.tasks[advance.step] = self._add(advance.step, 100.0)
        task, percent = self.tasks[advance.step], min(advance.percent, 100.0)
        self.bars.update(task, completed=percent, rows=advance.rows)

    def _add(self, title: str, total: float | None) -> TaskID:
        return self.bars.add_task(title, total=total, rows=0, began=time.monotonic())
