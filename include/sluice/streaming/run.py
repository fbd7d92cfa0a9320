"""What the steps of one run share."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from ..checkpoint import Rights
from ..report import Progress
from ..spec import Mode, Pipeline, Step
from ..storage import Paths


@dataclass(frozen=True)
class Run:
    """One run of a pipeline, as a step sees it. `at_once`: how many steps share the memory and the
    cores, at most. `pool`: of the scheduler, which the step has to itself where they are several;
    `spark` is a session of its own then."""

    spark: SparkSession
    pipeline: Pipeline
    paths: Paths
    mode: Mode
    run_id: str
    rights: Rights
    progress: Progress
    at_once: int = 1
    pool: str | None = None

    @property
    def deadline(self) -> float:
        """`time.monotonic()` after which no batch starts."""
        return self.rights.deadline

    def checkpoint(self, step: Step) -> str:
        """The folder of a step's checkpoint."""
        return self.mode.checkpoint(self.paths, step.name)

    def app_id(self, step: Step, generation: str) -> str:
        """Part of the key of each write of a step. Args: generation: of its checkpoint."""
        return f"sluice/{self.paths.home(step.name)}/{generation}"

    def where(self, step: Step) -> str:
        """A step, for messages."""
        return f"{self.pipeline.name}.{step.name}"
