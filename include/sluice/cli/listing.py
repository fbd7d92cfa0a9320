"""The verb that shows every pipeline: list."""

from typing import TYPE_CHECKING

from ..errors import SluiceError
from ..report import RunReport, latest_report
from ..spec import describe_schedule, find_pipelines, load_pipeline
from .app import Root, app, pipelines_folder

if TYPE_CHECKING:  # the other verbs start sooner without
    from rich.table import Table

_WIDEST = 1000
"""Columns of a terminal that nobody has: how wide a table would be is asked for it."""


@app.command("list")
def list_pipelines(root: Root = None) -> None:
    """Show every pipeline: schedule, last run, balance."""
    from rich.console import Console
    from rich.measure import Measurement

    out = Console(highlight=False, soft_wrap=True, emoji=False)
    rows: list[tuple[str, str, RunReport | None, str]] = []
    broken = []
    for path in find_pipelines(pipelines_folder()):
        try:
            pipeline = load_pipeline(path)
        except SluiceError as error:
            broken.append(error)
            rows.append((path.stem, "", None, ""))
            continue
        last = latest_report(pipeline.paths(root).reports())
        steps = ", ".join(step.name for step in pipeline.steps)
        rows.append((path.stem, describe_schedule(pipeline.schedule), last, steps))
    whole = _list_rows(rows, whole=True)
    needed = Measurement.get(out, out.options.update(max_width=_WIDEST), whole).maximum
    out.print(whole if needed <= out.width else _list_rows(rows, whole=False))
    if broken:
        raise broken[0]


def _list_rows(rows: list[tuple[str, str, RunReport | None, str]], whole: bool) -> "Table":
    """A table of pipelines. Args: rows: name, schedule, last report, steps (none: a broken file).
    whole: with steps and balance, for terminals that are wide enough; else a line is at most as
    wide as the terminal, and only long names and schedules are broken."""
    from rich.table import Table

    more = (["steps"], ["balance"]) if whole else ([], ["written"])
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for title in ("pipeline", "schedule", *more[0], "last run", "status", *more[1]):
        long = title in ("pipeline", "schedule")
        table.add_column(title, overflow="fold", no_wrap=not long)
    for name, schedule, last, steps in rows:
        seen = (
            (f"{last.ended:%Y-%m-%d %H:%M}", last.status)
            if last
            else ("never" if steps else "", "" if steps else "broken")
        )
        counts = last.counts if last else None
        rest = (counts.line if whole else f"{counts.written:,}") if counts else ""
        table.add_row(name, schedule, *([steps] if whole else []), *seen, rest)
    return table
