"""A step on its way: what the loop around its query knows, and tells."""

from dataclasses import dataclass

from ..checkpoint import note_reached, read_reached
from ..report import Advance, BatchReport
from ..sources import Inputs
from ..spark.watermarks import read_watermarks, restore_watermarks
from ..spec import Step, Trigger
from .pace import Pace
from .run import Run
from .tally import Tally


@dataclass
class Course:
    """A step on its way. `end`: when its query is stopped as its normal end, by
    `time.monotonic()`; None for one that ends by itself. `pace`: of the batch on its way."""

    run: Run
    step: Step
    tally: Tally
    inputs: Inputs
    trigger: Trigger
    end: float | None
    pace: Pace | None = None

    def resume_watermarks(self, batch: int) -> None:
        """Before a batch, let Spark know how far inputs had come that have no row in this run."""
        if self.step.inputs:
            reached = read_reached(self.tally.checkpoint, batch)
            known = {name: one.ms for name, one in reached.items()}
            restore_watermarks(self.run.spark, known)

    def note_watermarks(self, batch: int) -> None:
        """Note how far the inputs have come with a batch whose rows were just read."""
        if self.step.inputs:
            moments = read_watermarks(self.run.spark)
            note_reached(self.tally.checkpoint, batch, moments, self.run.run_id)

    def look_around(self) -> None:
        """Raise LeaseLost where another run has taken over; tell how far this one is."""
        self.run.rights.raise_if_lost()
        pace = self.pace
        if pace is not None and self.run.progress.each_second:
            pace.look(self.run.spark, self.run.pool)
            self.tell(within=pace)

    def tell(self, batch: BatchReport | None = None, within: Pace | None = None) -> None:
        """Say how far the step is."""
        done: float = self.tally.amount
        rows = sum(entry.batch.counts.read for entry in self.tally.finished)
        if within is not None:
            done, rows = done + within.share * within.taken.amount, rows + within.records
        told = Advance(self.step.name, done, self.inputs.total, rows, batch)
        self.run.progress.tell(told)
