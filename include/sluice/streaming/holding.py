"""What a step that gathers rows holds after a run, for its report."""

import logging
from dataclasses import asdict

from ..report import HeldInState
from ..spark.failure import SPARK_FAILED
from ..spark.state import read_state
from ..storage import spark_folder
from .plan import Plan
from .run import Run

_log = logging.getLogger(__name__)


def look_at_state(run: Run, plan: Plan) -> list[HeldInState]:
    """What the transform keeps in state; nothing where it gathers no rows, or nobody can tell."""
    if not plan.gathers:
        return []
    try:
        kept = read_state(run.spark, spark_folder(plan.place.checkpoint))
    except SPARK_FAILED:  # every row that left the state has its fate all the same
        _log.warning("what %s holds in state could not be read", plan.where, exc_info=True)
        return []
    return [HeldInState(**asdict(each), mode=plan.step.output_mode) for each in kept]
