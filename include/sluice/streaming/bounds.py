"""How much of a large backlog one batch takes where the pipeline does not say it."""

from pyspark.sql import DataFrame, SparkSession

from ..quality.rules import RowRule
from ..sources import CROWDING_BYTES, Inputs, Room
from ..spark.executors import driver_memory, fit_to_executors, storage_memory
from ..spark.output_mode import is_stateful
from ..spark.scratch import free_bytes
from ..spec import Step
from .inputs import join_inputs
from .overfull import take_back_plan
from .run import Run
from .transform import apply_transform

SHARE = 2
"""Bytes of text a batch takes, of each byte in which executors may hold rows. Its rows lie on their
disks, in half as many bytes, and little of them is sorted; each further batch is compared with what
the table holds by then (measured, 12,000,000 orders, 3 GB: in four batches 50 % more CPU than in
one, and more memory)."""
_ROOM = 0.5
"""The same of each byte that is free on the driver's disks, where they are the executors'. Rows of
248 bytes of JSON take 0.58 of them there, of 33 bytes of CSV 1.24."""

_A_FILE = 10_000
"""Bytes of the driver's heap for each file of a batch. Spark holds 1,600 as long as the batch goes
on, and more of each while it lists them (measured, 1,000,000 files in one batch: 89 % of the room
for what lives long in a heap of 3 GB, and fifteen whole collections before the first record)."""


def open_bounded(run: Run, step: Step, inputs: Inputs) -> tuple[DataFrame, list[RowRule]]:
    """The stream of a step behind its transform, and the rules of its inputs. A backlog that is
    larger than memory and disks is cut into batches, where that decides nothing: a state, a verdict
    on a batch as a whole, and what is late hang on the cut. On a cluster its executors are awaited,
    whose memory and cores decide.

    Raises what opening the inputs and the transform raise.
    """
    fit_to_executors(run.spark, run.pipeline.spark)
    may_be_cut = _may_be_cut(run, step)
    cut = may_be_cut and inputs.cut(_choose_room(run.spark) // run.at_once)
    frame, rules = _open(run, step, inputs)
    if cut and step.transform is not None and is_stateful(frame):
        inputs.take_whole()
        return _open(run, step, inputs)
    if may_be_cut:
        take_back_plan(run, step, inputs, frame)
    return frame, rules


def _choose_room(spark: SparkSession) -> Room:
    """Bytes of text for which there is memory, and room on the disks."""
    size, free = int(storage_memory(spark) * SHARE), free_bytes(spark)
    if free is not None:  # rows of a smaller batch are not kept there
        size = min(size, max(int(free * _ROOM), CROWDING_BYTES))
    return Room(size, driver_memory(spark) // _A_FILE)


def _open(run: Run, step: Step, inputs: Inputs) -> tuple[DataFrame, list[RowRule]]:
    if step.inputs:
        return join_inputs(run, step, inputs)
    (records,) = inputs.open(run.spark).values()
    return apply_transform(records, run.pipeline.folder, step.transform), []


def _may_be_cut(run: Run, step: Step) -> bool:
    in_state = step.dedup is not None and step.dedup.memory == "state"
    limits = [source.malformed_limit for source in step.sources]
    rules = [*step.rules, *(rule for one in step.streams.values() for rule in one.rules)]
    stops = any(rule.on_fail == "stop" for rule in rules)
    stops = stops or any(limit is not None and limit.on_fail == "stop" for limit in limits)
    refuses = any(source.refuses_unknown for source in step.sources)
    whole = run.mode.replaces or in_state or stops or refuses
    return not whole and run.mode.late_policy(step) == "merge"
