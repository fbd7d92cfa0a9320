"""A micro-batch that Spark has planned."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from ..checkpoint import Checkpoint
from ..sources import BatchInput
from .plan import Plan


@dataclass(frozen=True)
class Made:
    """What a table of groups was made of. `versions`: of each input. `query`: digest of what
    computed it. `why`: all of it was computed, empty where only the touched groups were. `size`: of
    all files of the inputs, bytes. `computing`: what has computed it, once it has. `warning`: what
    a person should know of it. `seen`: version of the table up to which was looked for what others
    did to it."""

    versions: Mapping[str, int]
    query: str
    why: str = ""
    size: int = 0
    computing: DataFrame | None = None
    warning: str = ""
    seen: int = 0


@dataclass(frozen=True)
class Batch:
    """One micro-batch. `watermark_ms`: of rows that may be late in it, 0 for none. `made`: of a
    step with `groups`, once its rows were computed."""

    number: int
    frame: DataFrame
    taken: BatchInput
    watermark_ms: int
    run_id: str
    made: Made | None = None

    @classmethod
    def of(cls, plan: Plan, frame: DataFrame, number: int, run_id: str) -> "Batch":
        """A planned batch, as the checkpoint's files tell of it."""
        checkpoint = Checkpoint.below(plan.place.checkpoint)
        taken = plan.inputs.inspect(checkpoint, number)
        return cls(number, frame, taken, checkpoint.batch_watermark_ms(number), run_id)
