"""What differs between kinds of runs: a drain of what is new, a backfill, a trial, a delivery, a
verification, a redo."""

import time
from dataclasses import dataclass
from typing import Literal

from ..errors import SpecError
from ..storage import Paths
from .pipeline import Pipeline
from .run import Redo, Refill, RunRequest, Verify, Window, clean_run_id
from .step import Step
from .trigger import AVAILABLE_NOW, Trigger, never_ends


@dataclass(frozen=True)
class Mode:
    """How a run goes about it, so that nobody asks a request for fields that may be absent.

    `name`: of a backfill's own checkpoint, or of a trial's root. `window`: of a backfill.
    `seconds`: how long each step of a trial takes rows. `refill`: of a delivery. `verify`: of a
    verification. `redo`: of a run that computes groups again, as a batch of the schedule's that
    has nothing new.
    """

    kind: Literal["scheduled", "backfill", "trial", "delivery", "verification", "redo"]
    name: str | None = None
    window: Window | None = None
    replaces: bool = False
    seconds: float | None = None
    refill: Refill | None = None
    verify: Verify | None = None
    redo: Redo | None = None

    @classmethod
    def of(cls, request: RunRequest) -> "Mode":
        """The mode a request asks for."""
        name = clean_run_id(request.run_id)
        if request.window is not None:
            return cls("backfill", name, request.window, request.write == "replace")
        if request.dev_seconds is not None:
            return cls("trial", name, seconds=request.dev_seconds)
        if request.refill is not None:
            return cls("delivery", refill=request.refill)
        if request.verify is not None:
            return cls("verification", verify=request.verify)
        if request.redo is not None:
            return cls("redo", redo=request.redo)
        return cls("scheduled")

    @property
    def is_scheduled(self) -> bool:
        """True where what is new is read, through the step's own checkpoint."""
        return self.kind == "scheduled"

    @property
    def is_backfill(self) -> bool:
        """True where a range is read again, through a checkpoint of its own."""
        return self.kind == "backfill"

    @property
    def is_trial(self) -> bool:
        """True where everything lies in a root of its own and ends after some seconds."""
        return self.kind == "trial"

    @property
    def range(self) -> Window | None:
        """The range of time that a run is about; None where it is about all of it."""
        return self.redo.window if self.redo is not None else self.window

    @property
    def writes(self) -> bool:
        """True where the tables and checkpoints of the steps are written."""
        return self.verify is None

    def choose(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with the steps that this kind of run works on. A backfill leaves out those
        with `groups`, which the next scheduled run refreshes from what it has written, and those
        that read their tables; a redo has one of them.

        Raises SpecError where none is left.
        """
        if self.redo is not None:
            return pipeline.model_copy(update={"steps": [_step_to_redo(pipeline, self.redo.step)]})
        if not self.is_backfill:
            return pipeline
        left_out: set[str | None] = set()
        for step in pipeline.steps:
            follows = any(one.source.reads_step in left_out for one in step.streams.values())
            left_out |= {step.name} if step.groups or (left_out and follows) else set()
        steps = [step for step in pipeline.steps if step.name not in left_out]
        if not steps:
            raise SpecError(
                "every step has `groups`: its table follows from its inputs as they are, and has "
                "no range of its own to read again",
                where=pipeline.name,
                do="Backfill what writes the inputs; the next scheduled run refreshes the groups "
                "that it touches. `sluice redo` computes the groups of a range again",
            )
        return pipeline.model_copy(update={"steps": steps})

    def place(self, paths: Paths) -> Paths:
        """Where the run's tables, checkpoints and reports lie, of a pipeline's paths."""
        return paths.trial(self.name or "") if self.is_trial else paths

    def reports(self, paths: Paths) -> str:
        """The folder of the run's report: one that verifies tells of no row that came."""
        return paths.verdicts() if self.verify is not None else paths.reports()

    def checkpoint(self, paths: Paths, step: str) -> str:
        """The folder of a step's checkpoint."""
        return paths.checkpoint(step, self.name if self.is_backfill else None)

    def lease(self, paths: Paths, step: str) -> str:
        """Where the lease of a step's checkpoint lies."""
        return paths.lease(step, self.name if self.is_backfill else None)

    def trigger(self, step: Step) -> Trigger:
        """The step's trigger. A backfill always drains; a trial source knows no availableNow."""
        if self.is_backfill:
            return AVAILABLE_NOW
        if self.redo is not None:
            return "once"  # the batch that was planned for it, and none behind it
        trial = any(one.why_trial for one in step.sources) and step.trigger == AVAILABLE_NOW
        return "default" if trial else step.trigger

    def end(self, trigger: Trigger, deadline: float) -> float | None:
        """When a query that starts now is stopped as its normal end, by `time.monotonic()`.

        None for one that ends by itself. Args: deadline: of the run.
        """
        if self.seconds is not None:
            return min(deadline, time.monotonic() + self.seconds)
        return deadline if never_ends(trigger) else None

    def late_policy(self, step: Step) -> Literal["merge", "keep", "drop"]:
        """What becomes of rows behind the watermark; to a backfill nothing is late."""
        return "merge" if step.dedup is None or self.is_backfill else step.dedup.late

    def range_condition(self, step: Step) -> str | None:
        """SQL for the rows of a backfill's window; None where all rows take part."""
        if self.window is None or step.event_time is None:
            return None
        start, end = self.window.literals
        column = "`" + step.event_time.column.replace("`", "``") + "`"
        return f"{column} >= {start} AND {column} < {end}"


def _step_to_redo(pipeline: Pipeline, name: str) -> Step:
    """The step whose groups are computed again. Raises SpecError where there is none."""
    known = [step for step in pipeline.steps if step.groups]
    found = next((step for step in known if step.name == name), None)
    if found is None:
        raise SpecError(
            "no step of this name has `groups` that could be computed again",
            where=pipeline.name,
            value=name,
            do=f"There are: {', '.join(step.name for step in known) or 'none'}. Of other steps "
            f"`sluice backfill {pipeline.name} --from … --to …` reads a range again",
        )
    return found
