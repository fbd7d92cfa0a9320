"""Reports on disk or in a bucket: one JSON and one HTML file a run, each replaced whole."""

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import TerminalError
from ..spec import clean_run_id
from ..storage import is_remote, open_path, replace_file
from .counts import Counts
from .model import RunReport
from .render import render_html

_log = logging.getLogger(__name__)

# Files are looked at in the order they were written, reports are wanted in the order their runs
# started. Both agree but for runs that overlap (a backfill beside the schedule), so this many more
# are read than asked for.
_OVERLAPPING_RUNS = 8
_MOST_IDLE = 60
"""So many reports of idle runs are passed over in search of one that is not."""


class StoredReport(NamedTuple):
    """The file of a report, as the listing of its folder tells it. `written`: seconds of the epoch.
    `size`: bytes."""

    written: float
    name: str
    size: int


def report_path(folder: str | os.PathLike, run_id: str, suffix: str = "json") -> Path:
    """The file of one run inside `folder`, whatever the run id contains; `suffix` is `json` or
    `html`."""
    return open_path(folder) / f"{clean_run_id(run_id)}.{suffix}"


def write_report(
    report: RunReport, folder: str | os.PathLike, may_write: Callable[[], None] = lambda: None
) -> str:
    """Write `<run id>.html`, then `<run id>.json`, and return the JSON's path.

    Where the report that is replaced tells of batches that no other one does, these stay told, in
    `<run id>.1.json`, `<run id>.2.json` and so on.

    Args: may_write: called when all is ready to be written; what it raises keeps the report back.
    Raises OSError when the folder cannot be written.
    """
    if not is_remote(folder):
        open_path(folder).mkdir(parents=True, exist_ok=True)
    path = report_path(folder, report.run_id)
    texts = [(_render(report, path), path)]
    if (earlier := _read_file(path)) is not None:
        kept = kept_reports(folder, report.run_id)
        told = report.told.union(*(other.told for other in kept))
        if not earlier.told <= told:
            beside = _kept_path(path, len(kept) + 1)
            _log.info("%s tells of other batches: it is kept as %s", path, beside)
            texts.insert(0, (_render(_leave_out(earlier, told), beside), beside))
    may_write()
    for text, place in texts:
        _put(text, place)
    return str(path)


def leave_to_others(report: RunReport, folder: str | os.PathLike, told: set[str]) -> None:
    """Write a report again, without batches and deliveries that other runs tell of."""
    path = report_path(folder, report.run_id)
    _put(_render(_leave_out(report, told), path), path)


def kept_reports(folder: str | os.PathLike, run_id: str) -> list[RunReport]:
    """What earlier tries of a run told that its report does not."""
    path = report_path(folder, run_id)
    kept: list[RunReport] = []
    while (report := _read_file(_kept_path(path, len(kept) + 1))) is not None:
        kept.append(report)
    return kept


def told_by(folder: str | os.PathLike, run_id: str, *, replaced: bool) -> set[str]:
    """What the stored reports of a run tell of: none where it died before its report.

    Args: replaced: its newest report will be written anew, so only what is kept beside counts.
    """
    reports = kept_reports(folder, run_id)
    if not replaced:
        with suppress(FileNotFoundError):
            reports.append(read_report(folder, run_id))
    return set().union(*(report.told for report in reports))


def _kept_path(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number}.json")


def _leave_out(report: RunReport, told: set[str]) -> RunReport:
    """A report of the batches that are not told elsewhere, so that each is counted once."""
    steps = []
    for step in report.steps:
        batches = [batch for batch in step.batches if batch.identity(step.name) not in told]
        counts = sum((batch.counts for batch in batches), Counts())
        sent = [sent for sent in step.deliveries if sent.identity not in told]
        left = {"batches": batches, "counts": counts, "deliveries": sent}
        steps.append(step.model_copy(update=left))
    return report.model_copy(update={"steps": steps})


def _render(report: RunReport, path: Path) -> tuple[str, str]:
    """The two faces of a report that will lie at a path: HTML and JSON."""
    last = latest_worked(path.parent) if report.status == "nothing new" else None
    link = (last, report_path(path.parent, last.run_id, "html").name) if last else None
    return render_html(report, link), report.model_dump_json(indent=1)


def _put(texts: tuple[str, str], path: Path) -> None:
    """The JSON comes last: a run is listed when its JSON is there, and then its HTML is too."""
    for suffix, text in zip((".html", ".json"), texts, strict=True):
        replace_file(path.with_suffix(suffix), text)


def _read_file(path: Path) -> RunReport | None:
    """The report in a file; None where there is no file, or what is in it is no report."""
    try:
        return RunReport.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        _log.warning("%s is not a run report: %s", path, _first_line(error))
        return None


def read_report(folder: str | os.PathLike, run_id: str) -> RunReport:
    """The report of one run.

    Raises FileNotFoundError when there is none, TerminalError when its file is not a report.
    """
    path = report_path(folder, run_id)
    try:
        report = RunReport.model_validate_json(path.read_bytes())
    except ValueError as error:
        raise TerminalError(
            f"not a run report: {_first_line(error)}",
            where=str(path),
            do="Delete it, or read it with the version that wrote it",
        ) from error
    # Two ids can share a file name (`a:b` and `a_b`); the name itself is as good an id, it is what
    # a URL or a file listing gives, and the only one of what is kept of an earlier try.
    if run_id not in (report.run_id, path.stem):
        raise FileNotFoundError(
            f"no report of run {run_id!r}: {path} holds the report of {report.run_id!r}"
        )
    return report


def list_reports(folder: str | os.PathLike, limit: int | None = None) -> list[RunReport]:
    """Reports of a folder, newest `started` first; with a limit only about that many files are
    read. A file that is no report is skipped with a warning."""
    wanted = None if limit is None else limit + _OVERLAPPING_RUNS
    reports: list[RunReport] = []
    home = open_path(folder)
    for file in newest_files(folder):
        if wanted is not None and len(reports) >= wanted:
            break
        path = home / file.name
        try:
            reports.append(RunReport.model_validate_json(path.read_bytes()))
        except (ValueError, OSError) as error:
            _log.warning(
                "%s is not a readable run report and was skipped: %s", path, _first_line(error)
            )
    reports.sort(key=_started, reverse=True)
    return reports[:limit]


def newest_first(folder: str | os.PathLike, limit: int) -> list[StoredReport]:
    """The files among which the reports of the last runs are, at most a few more than asked for."""
    return newest_files(folder)[: limit + _OVERLAPPING_RUNS]


def latest_report(folder: str | os.PathLike) -> RunReport | None:
    """The report of the run that started last; None when there is none."""
    return next(iter(list_reports(folder, limit=1)), None)


def latest_worked(folder: str | os.PathLike) -> RunReport | None:
    """The newest report of a run that was not idle, None where there is none among the newest
    ones."""
    home = open_path(folder)
    found = (_read_file(home / file.name) for file in newest_files(folder)[:_MOST_IDLE])
    return next((report for report in found if report and report.status != "nothing new"), None)


def _started(report: RunReport) -> tuple[datetime, str]:
    moment = report.started
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC), report.run_id)


def newest_files(folder: str | os.PathLike) -> list[StoredReport]:
    """The JSON files by the time they were written, newest first; one listing, no request per
    file."""
    home = open_path(folder)
    try:
        found = _list_bucket(home) if is_remote(home) else _list_folder(home)
    except FileNotFoundError:
        return []
    return sorted(found, reverse=True)


def _list_folder(home: Path) -> list[StoredReport]:
    found = []
    with os.scandir(home) as entries:
        for entry in entries:
            if entry.name.endswith(".json") and entry.is_file():
                stat = entry.stat()
                found.append(StoredReport(stat.st_mtime, entry.name, stat.st_size))
    return found


def _list_bucket(home: Any) -> list[StoredReport]:
    # fsspec remembers listings for the life of the process, and a UI's process lives long.
    home.fs.invalidate_cache()
    found = []
    for entry in home.fs.ls(home.path, detail=True):
        written = (
            entry.get("LastModified")
            or entry.get("last_modified")
            or entry.get("mtime")
            or entry.get("created")
            or 0.0
        )
        name = entry["name"].rstrip("/").rsplit("/", 1)[-1]
        if name.endswith(".json") and entry.get("type") == "file":
            seconds = written.timestamp() if isinstance(written, datetime) else float(written)
            found.append(StoredReport(seconds, name, int(entry.get("size") or 0)))
    return found


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
