"""What a step with state holds after a run, for its report."""

import logging
from collections.abc import Iterator
from dataclasses import fields

from ..checkpoint import HeldBefore, live_bytes, noted_held
from ..report import HeldInState
from ..report.units import format_amount, format_bytes
from ..spark.failure import SPARK_FAILED
from ..spark.kept_state import Kept
from ..spark.state import read_state, read_times
from ..spec import Step
from ..storage import spark_folder
from .plan import Plan
from .run import Run

_log = logging.getLogger(__name__)
_TOLD = {field.name for field in fields(Kept)} - {"delay_ms"}


def look_at_state(run: Run, plan: Plan, counted: list[Kept] | None) -> list[HeldInState]:
    """What a step keeps in state; nothing where it keeps none, or nobody can tell.

    Args: counted: by its operators behind the last batch of this run; None where none did.
    """
    if not plan.stateful:
        return []
    folder = spark_folder(plan.place.checkpoint)
    try:
        kept = (
            read_state(run.spark, folder)
            if counted is None
            else read_times(run.spark, folder, counted)
        )
    except SPARK_FAILED:  # every row that left the state has its fate all the same
        _log.warning("what %s holds in state could not be read", plan.where, exc_info=True)
        kept = counted or []
    before = noted_held(plan.place.checkpoint)
    return [_tell(plan, each, folder, before) for each in kept]


def describe_endless(step: Step, held: list[HeldInState]) -> Iterator[str]:
    """A sentence where keys are remembered for ever, with how large that has become."""
    if step.dedup is None or step.dedup.memory != "state" or step.dedup.within != "forever":
        return
    for kept in (kept for kept in held if kept.forever):
        size = f" ({format_bytes(kept.bytes)})" if kept.bytes is not None else ""
        yield (
            f"`within: forever` with `memory: state` never lets a key go: "
            f"{format_amount(kept.amount, 'key')}{size} by now, which every run loads. "
            "`memory: table` remembers as long and keeps no second copy"
        )


def held_after(run_id: str, held: list[HeldInState]) -> HeldBefore | None:
    """What the next run compares with; None where this one told nothing."""
    amounts = {_place(kept): kept.amount for kept in held}
    return HeldBefore(run_id, amounts) if amounts else None


def _place(kept: Kept | HeldInState) -> str:
    """What no other part of a step's state is called."""
    return f"{kept.number} {kept.unit}"


def _tell(plan: Plan, kept: Kept, folder: str, before: HeldBefore | None) -> HeldInState:
    amount = before.amounts.get(_place(kept)) if before else None
    return HeldInState(
        **{name: getattr(kept, name) for name in _TOLD},
        mode=plan.step.output_mode,
        bytes=live_bytes(folder, kept.number) if kept.unit != "timer" else None,
        grown=None if amount is None else kept.amount - amount,
        since=before.run_id if before and amount is not None else "",
    )
