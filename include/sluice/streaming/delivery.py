"""Gives a batch's rows to the sinks beside the target: those that the target took in."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..checkpoint import Rights
from ..sinks import Delivery, deliver
from .plan import Plan
from .target import is_of_batch
from .written import Written, check_same


def deliver_rows(
    plan: Plan, rights: Rights, number: int, rows: DataFrame | None, written: Written
) -> dict[str, int]:
    """Give rows to each further sink; returns how many each has, by its place.

    Args: rows: None where the batch brought none. Raises what the sinks raise, and
    UnbalancedReport where the rows are not the batch's, or a sink got fewer or more of them.
    """
    if rows is None or not plan.step.further_sinks:
        return {}
    expected = written.inserted + written.replaced
    _check_rows(plan, number, rows, expected)
    delivery = Delivery(
        plan.place.app_id,
        number,
        plan.columns.names,
        plan.place.folder,
        plan.place.root,
        plan.rules.hidden,
    )
    sinks, check = plan.step.further_sinks, lambda: rights.check(plan.step.name)
    delivered = deliver(sinks, rows, delivery, check)
    for place, count in delivered.items():
        check_same(expected, count, "rows were written", f"came to {place}", plan.where)
    return delivered


def _check_rows(plan: Plan, number: int, rows: DataFrame, expected: int) -> None:
    """Rows are found by the batch's key; that it is this batch's, and all of it, is counted."""
    own = F.coalesce(is_of_batch(plan.batch_key(number)), F.lit(False))
    count, of_batch = rows.agg(F.count(F.lit(1)), F.count_if(own)).collect()[0]
    check_same(count, of_batch, "rows are to be delivered", "are of this batch", plan.where)
    check_same(expected, count, "rows were written", "were found to be delivered", plan.where)
