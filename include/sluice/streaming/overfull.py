"""A batch that was planned and not finished, and is larger than one may be now.

Spark takes a planned batch again as it is. One that was too large for the machine would end each
run, whatever the pipeline says by then about the size of a batch. So where nothing hangs on the cut
and none of its rows is in the target, its plan is taken back: its files or offsets wait again.
"""

from pyspark.sql import DataFrame

from ..checkpoint import Checkpoint, noted_generation, take_back
from ..sources import Inputs
from ..spark.output_mode import is_stateful
from ..spark.table_setup import locate_target
from ..spark.tables import newest_writes
from ..spec import AVAILABLE_NOW, Step
from .run import Run


def take_back_plan(run: Run, step: Step, inputs: Inputs, frame: DataFrame) -> None:
    """Take back the plan of a batch that is too large, where that is safe; what it left in other
    tables goes with its next try. Call it before the stream starts, for a step whose cut decides
    nothing unless its query (`frame`) keeps a state."""
    home = run.checkpoint(step)
    checkpoint, generation = Checkpoint.below(home), noted_generation(home)
    number = checkpoint.open_batch
    if number is None or generation is None or step.target is None:
        return
    if run.mode.trigger(step) != AVAILABLE_NOW:  # `once` knows no bound, and is planned by hand
        return
    if not inputs.has_overfull(checkpoint, number) or _is_written(run, step, generation, number):
        return
    if step.transform is not None and is_stateful(frame):
        return
    run.rights.check(step.name)
    take_back(checkpoint, number, len(inputs.intakes))
    inputs.told.append(
        f"batch {number} had been planned with more than a batch may take now, and was not "
        "finished: what it was to read is planned anew"
    )


def _is_written(run: Run, step: Step, generation: str, number: int) -> bool:
    target = locate_target(run.spark, step, run.paths)
    done = newest_writes(run.spark, target) if target else {}
    return done.get(run.app_id(step, generation), -1) >= number
