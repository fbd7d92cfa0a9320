"""How much of a large backlog one batch takes where the pipeline does not say it."""

from pyspark.sql import DataFrame

from ..sources import Intake
from ..spark.executors import fit_to_executors, storage_memory
from ..spark.output_mode import is_stateful
from ..spec import Step
from .run import Run
from .transform import apply_transform

_SHARE = 0.6
"""Bytes of text a batch takes, of each byte in which executors may hold rows: its kept rows then
lie on their disks about twice, and what sorts them stays in memory."""


def open_bounded(run: Run, step: Step, intake: Intake) -> DataFrame:
    """The stream of a step behind its transform. A backlog that is larger than the memory is cut
    into batches, where that decides nothing: a state, a verdict on a batch as a whole, and what is
    late hang on the cut. On a cluster its executors are awaited, whose memory and cores decide.

    Raises what opening the intake and the transform raise.
    """
    fit_to_executors(run.spark, run.pipeline.spark)
    cut = _may_be_cut(run, step) and intake.cut(int(storage_memory(run.spark) * _SHARE))
    frame = _open(run, step, intake)
    if not cut or step.transform is None or not is_stateful(frame):
        return frame
    intake.source = intake.source.in_one_batch()
    return _open(run, step, intake)


def _open(run: Run, step: Step, intake: Intake) -> DataFrame:
    return apply_transform(intake.open(run.spark), run.pipeline.folder, step.transform)


def _may_be_cut(run: Run, step: Step) -> bool:
    in_state = step.dedup is not None and step.dedup.memory == "state"
    limit = step.source.malformed_limit
    stops = any(rule.on_fail == "stop" for rule in step.rules)
    stops = stops or (limit is not None and limit.on_fail == "stop")
    whole = run.mode.replaces or in_state or stops or step.source.refuses_unknown
    return not whole and run.mode.late_policy(step) == "merge"
