"""What a run will tell, while it goes on."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from ..errors import ExitCode
from ..spec import Mode, Pipeline, RunRequest
from ..storage import Paths
from .cost import measure_cost
from .deliveries import Undelivered
from .ending import OUT_OF_TIME, UNFINISHED, Ending
from .model import Outcome, RunReport, StepReport


class Teller(Protocol):
    """What a step came to so far."""

    @property
    def step(self) -> str:
        """The step's name."""

    @property
    def lacking(self) -> list[Undelivered]:
        """What each further sink lacks."""

    @property
    def claimed(self) -> set[str]:
        """The batches of which the notes say that another run tells."""

    def warn(self, *sentences: str) -> None:
        """Add what a person should know."""

    def report(self) -> StepReport:
        """The step's part of the report."""

    def settle(self) -> None:
        """Note what the stored report tells, so that no other does."""


class Story:
    """What the report of a run will tell: filled while it goes on, told once, at its end."""

    def __init__(self, request: RunRequest) -> None:
        self.request, self.mode = request, Mode.of(request)
        self.started = datetime.now(UTC)
        self.name = Path(request.pipeline).stem
        self._paths = Paths.under(request.root, self.name)
        self._begun: list[Teller] = []
        self._order: dict[str, int] = {}
        self._left_out: list[str] = []
        self.spark: dict[str, str] = {}

    @property
    def paths(self) -> Paths:
        """Where the run's tables, checkpoints and reports lie."""
        return self.mode.place(self._paths)

    @property
    def reports(self) -> str:
        """The folder of the run's report."""
        return self.mode.reports(self.paths)

    def begin(self, pipeline: Pipeline) -> Pipeline:
        """Tell of this pipeline; before its file is read, the file's name stands for it. Out: the
        pipeline with the steps that this kind of run works on. Raises SpecError for none."""
        self.name, self._paths = pipeline.name, pipeline.paths(self.request.root)
        chosen = self.mode.choose(pipeline)
        self._order = {step.name: number for number, step in enumerate(chosen.steps)}
        self._left_out = [one.name for one in pipeline.steps if one.name not in self._order]
        return chosen

    def add(self, tally: Teller) -> None:
        """Tell of a step as well."""
        self._begun.append(tally)

    @property
    def tallies(self) -> list[Teller]:
        """Of the steps that have begun, in the order of the file."""
        return sorted(self._begun, key=lambda tally: self._order[tally.step])

    @property
    def lacking(self) -> list[Undelivered]:
        """What further sinks lack."""
        return [lack for tally in self.tallies for lack in tally.lacking if lack.batches]

    def warn(self, step: str, sentences: list[str]) -> None:
        """What a person should know of a step, where it has begun."""
        for tally in self.tallies:
            if tally.step == step:
                tally.warn(*sentences)

    def _tell_steps(self) -> list[StepReport]:
        """The steps' parts of the report; the last says which steps follow in another run."""
        steps = [tally.report() for tally in self.tallies]
        if not steps or not self._left_out:
            return steps
        told = (
            f"{', '.join(self._left_out)}: a backfill leaves steps with `groups` out, and what "
            "reads them; the next scheduled run refreshes the groups that it touched"
        )
        last = steps[-1]
        return [*steps[:-1], last.model_copy(update={"warnings": [*last.warnings, told]})]

    def tell(self, ending: Ending) -> RunReport:
        """The report. A table-level `stop` rule is judged at the end, on all rows of the run."""
        window = self.mode.range
        seconds, core_seconds = measure_cost()
        report = RunReport(
            pipeline=self.name,
            run_id=self.request.run_id,
            kind=self.mode.kind,
            window=f"{window.start} .. {window.end}" if window else None,
            started=self.started,
            ended=datetime.now(UTC),
            status=ending.status,
            exit_code=ending.exit_code,
            error=ending.error,
            steps=self._tell_steps(),
            seconds_up=seconds,
            core_seconds=core_seconds,
            spark=self.spark,
        )
        # One that nobody could evaluate because the time was over is left to the next run.
        whole = ending.status in ("done", "undelivered")
        judged = [r for r in report.failed_rules if r.outcome is Outcome.FAILED or whole]
        if (whole or ending in (OUT_OF_TIME, UNFINISHED)) and any(
            rule.on_fail == "stop" for rule in judged
        ):
            ended = {"status": "stopped by a rule", "exit_code": ExitCode.STOPPED_BY_RULE}
            return report.model_copy(update=ended)
        return report
