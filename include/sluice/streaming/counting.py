"""What a surveyed batch counts before its writes: its records, and what operators with state
dropped of them."""

from pyspark.sql import SparkSession

from ..report import Counts
from ..sources import BatchInput
from ..spark.operators import count_duplicates_in_operators, count_late_in_operators
from .plan import Plan
from .survey import Survey
from .written import check_same


def count_batch(plan: Plan, taken: BatchInput, survey: Survey, session: SparkSession) -> Counts:
    """The records of the batch that is worked at, and what its operators dropped of them.

    Raises UnbalancedReport where Spark's readers gave other records than were counted.
    """
    _check_scan(plan, taken, survey)
    lost = len(taken.lost)
    late = survey.late if plan.late == "drop" else 0
    counts = Counts(
        read=survey.read + lost,
        malformed=survey.malformed + lost,
        rejected=survey.rejected,
        filtered=survey.filtered,
        entered=survey.entered,
        made=survey.made,
        late=late,
        late_merged=survey.late if plan.late == "merge" else 0,
    )
    if not plan.stateful:
        return counts
    gone, dropped = count_duplicates_in_operators(session), count_late_in_operators(session)
    late = sum(operator.dropped for operator in dropped)
    groups = sum(operator.dropped for operator in dropped if operator.unit == "groups")
    counts += Counts(made=gone + late, duplicate=gone, late=late, late_groups=groups)
    return counts if survey.branched else counts + Counts(read=gone + late, entered=gone + late)


def count_inputs(taken: BatchInput, survey: Survey) -> dict[str, Counts]:
    """The records of each input of a batch, with the files of it that nobody could read."""
    lost = {name: len(part.lost) for name, part in taken.parts.items()}
    return {
        name: counts + Counts(read=lost.get(name, 0), malformed=lost.get(name, 0))
        for name, counts in survey.inputs.items()
    }


def _check_scan(plan: Plan, taken: BatchInput, survey: Survey) -> None:
    """Compare what the survey counted with what Spark's readers say that they read."""
    if survey.scanned is None or plan.stateful or survey.branched:
        return  # a branch reads each record twice; operators keep records back
    doubled = taken.scan == "at least" and survey.scanned < survey.read
    if taken.scan == "exact" or doubled:
        what, then = "records were read by Spark", "were counted"
        check_same(survey.scanned, survey.read, what, then, plan.where)
