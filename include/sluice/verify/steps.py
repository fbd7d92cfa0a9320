"""Verifies the steps of a pipeline: what their tables hold against what their inputs give once
more."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..checkpoint import Checkpoint
from ..errors import PreflightError, SluiceError, SourceError, SpecError
from ..report import StepReport, Undelivered, Verification
from ..spec import Pipeline, Step
from ..spec.verifiable import why_unverifiable
from ..storage import Paths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def choose_steps(pipeline: Pipeline, name: str | None) -> tuple[list[Step], dict[str, str]]:
    """The step that is named, else all that can be verified; and why others cannot, by name.
    Raises SpecError where none can."""
    steps = [step for step in pipeline.steps if name in (None, step.name)]
    if not steps:
        raise SpecError(
            "the pipeline has no such step",
            where=pipeline.name,
            value=name,
            do=f"There are: {', '.join(step.name for step in pipeline.steps)}",
        )
    left_out = {step.name: why for step in steps if (why := why_unverifiable(step))}
    if len(left_out) == len(steps):
        raise SpecError(
            "; ".join(f"{name}: {why}" for name, why in left_out.items()),
            where=pipeline.name,
            do="`sluice torture` compares the tables of any step with those of undisturbed runs",
        )
    return [step for step in steps if step.name not in left_out], left_out


@dataclass
class Verdict:
    """What a run that verifies tells of a step. `found`: of each of its tables. `problem`: why it
    could not be verified."""

    of: Step
    paths: Paths
    found: list[Verification] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    problem: SluiceError | None = None

    @property
    def step(self) -> str:
        """The step's name."""
        return self.of.name

    @property
    def has_run(self) -> bool:
        """Whether a batch of the step is finished."""
        return Checkpoint.below(self.paths.checkpoint(self.step)).newest_commit is not None

    @property
    def lacking(self) -> list[Undelivered]:
        """Nothing: further sinks are not looked at."""
        return []

    @property
    def claimed(self) -> set[str]:
        """Nothing: no batch is told."""
        return set()

    def look(self, spark: "SparkSession", pipeline: Pipeline, share: float) -> None:
        """Compare the step's tables, or warn of what keeps them from being compared. Args: share:
        of the groups of a step with `groups`."""
        from ..streaming.replay import verify_by_replay
        from ..streaming.verifying import verify_groups

        if share < 1 and not self.of.groups:
            self.warn(f"{self.step} was compared as a whole: a sample is of groups")
        try:
            if self.of.groups:
                self.found.append(verify_groups(spark, pipeline, self.of, self.paths, share))
            else:
                self.found.extend(verify_by_replay(spark, pipeline, self.of, self.paths))
        except (SpecError, PreflightError, SourceError) as error:
            self.problem = error
            self.warn(f"{self.step} was not verified: {error}")

    def warn(self, *sentences: str) -> None:
        """Add what a person should know."""
        self.warnings += sentences

    def report(self) -> StepReport:
        """The step's part of the report."""
        return StepReport(
            name=self.step,
            target=self.of.target_path(self.paths),
            quarantine=self.paths.quarantine(self.step),
            verified=self.found,
            versions={one.table: one.version for one in self.found},
            warnings=self.warnings,
        )

    def settle(self) -> None:
        """Nothing: no batch is told."""


def open_verdicts(pipeline: Pipeline, paths: Paths, name: str | None) -> list[Verdict]:
    """One for each step that is verified; the last says why others are not. Raises SpecError for
    none."""
    chosen, left_out = choose_steps(pipeline, name)
    verdicts = [Verdict(step, paths) for step in chosen]
    verdicts[-1].warn(*(f"{one} was not verified: {why}" for one, why in left_out.items()))
    return verdicts


def conclude(verdicts: list[Verdict]) -> list[Verification]:
    """What was found of all tables. Raises what kept the first step from being verified where no
    step was."""
    found = [one for verdict in verdicts for one in verdict.found]
    problems = [verdict.problem for verdict in verdicts if verdict.problem is not None]
    if not found and problems:
        raise problems[0]
    return found
