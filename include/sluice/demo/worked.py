"""The worked pipelines: what lands is made by a seeded generator, and each landing gets a run."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from ..errors import SluiceError, SpecError, suggest
from ..report import Outcome, RunReport
from ..report.step_notes import step_notes
from ..report.summary import balance_notes, list_warnings
from ..runner import run_pipeline
from ..spec import RunRequest
from ..storage import PIPELINES
from . import activity, ads, cloudtrail, devices, logs, retail, signals, wordcount
from .landing import Deliver, Landing, deliver_files


@dataclass(frozen=True)
class Worked:
    """A worked pipeline. `generate`: what lands before each run; `deliver`: opens the way there
    below a root; `seconds`: of one whose source cannot be read again, so that each run is a trial
    that long."""

    generate: Callable[[], Iterator[Landing]]
    deliver: Callable[[Path], AbstractContextManager[Deliver]] = deliver_files
    seconds: float | None = None


WORKED = {
    "activity": Worked(activity.generate_landings, activity.deliver_requests),
    "ads": Worked(ads.generate_landings),
    "cloudtrail": Worked(cloudtrail.generate_landings),
    "devices": Worked(devices.generate_landings, devices.deliver_messages),
    "logs": Worked(logs.generate_landings),
    "retail": Worked(retail.generate_landings),
    "signals": Worked(signals.generate_landings),
    "wordcount": Worked(wordcount.generate_landings, wordcount.deliver_lines, seconds=20),
}
"""By name; the YAML of each is the one in `include/pipelines/<name>`."""

_LONGER = 3
"""Times as long a trial is given that read too little: Spark may have needed longer to start."""


def find_file(name: str) -> Path:
    """The YAML of a worked pipeline. Raises SpecError that lists those there are."""
    if name not in WORKED:
        raise SpecError(
            "no such worked pipeline",
            where="NAME",
            value=name,
            do=f"{suggest(name, list(WORKED))}There are: {', '.join(WORKED)}; without NAME the "
            "demo is that of the orders",
        )
    return next((PIPELINES / name).glob("*.yaml"))


def run_worked(name: str, root: Path, say: Callable[[str], None]) -> list[RunReport]:
    """Run a worked pipeline once a landing, below a fresh folder.

    Raises SluiceError for a run that did not end well, SpecError for a name that is not there.
    """
    file, worked = find_file(name), WORKED[name]
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    reports: list[RunReport] = []
    with worked.deliver(root) as deliver:
        for number, landing in enumerate(worked.generate(), 1):
            deliver(landing)
            say(f"\nLanded {landing.title}: {landing.amount}")
            request = RunRequest(
                pipeline=str(file),
                root=str(root),
                run_id=f"{name}_{number}",
                dev_seconds=worked.seconds,
            )
            reports.append(_run(request, landing, say))
            say(render_short(reports[-1]))
            if reports[-1].error:
                raise SluiceError(
                    reports[-1].error, where=name, do="Mend it and run the demo again"
                )
    return reports


def _run(request: RunRequest, landing: Landing, say: Callable[[str], None]) -> RunReport:
    """Run once; a trial that ended before it had read all that was sent, once more and longer."""
    report = run_pipeline(request)
    if request.dev_seconds is None or report.error or report.counts.read >= landing.records:
        return report
    longer = {"run_id": f"{request.run_id}_longer", "dev_seconds": request.dev_seconds * _LONGER}
    say(
        f"Its {request.dev_seconds:g} seconds were over when it had read {report.counts.read} of "
        f"{landing.records} records; once more, for {longer['dev_seconds']:g} seconds"
    )
    return run_pipeline(request.model_copy(update=longer))


def render_short(report: RunReport) -> str:
    """A report in some lines: what became of the rows of each step, the rules that failed, and what
    else there is to know."""
    lines = [f"Run {report.run_id}: {report.status}"]
    for step in report.steps:
        lines.append(f"  {step.name}")
        lines += [f"    {line}" for line in step.counts.lines]
        lines += [f"    {note}" for note in [*balance_notes(step.counts), *step_notes(step)]]
        lines += [
            f"    {rule.name} ({rule.on_fail}): {rule.unexpected:,} of {rule.evaluated:,} failed"
            for rule in step.rules
            if rule.outcome is Outcome.FAILED and rule.unexpected is not None
        ]
        lines += [f"    Warning: {warning}" for warning in list_warnings(step)]
    return "\n".join(lines)
