"""The tries of a batch: each is numbered before its first write, and takes back what an earlier one
left half done."""

from collections.abc import Callable
from hashlib import sha256

from pyspark.sql import SparkSession

from ..checkpoint import Attempt, note_attempt, read_attempt
from ..sources import BatchInput
from ..spark.columns import BATCH_KEY
from ..spark.tables import delete_rows
from .plan import Plan

_WHY = {
    "definition": "under another definition (rules, schema, transform, event time or dedup)",
    "input": "over another input",
    None: "",
}


def begin_try(
    plan: Plan,
    number: int,
    taken: BatchInput,
    session: SparkSession,
    may_write: Callable[[], None],
) -> tuple[Attempt, str]:
    """Note the try of a batch whose target commit is not there, and take back the refused and late
    rows of earlier tries: a batch is finished under one definition, over one input.

    Out: the try, and what a person should know of it (empty most often).
    """
    earlier = read_attempt(plan.place.checkpoint, number)
    again = number == plan.open_batch
    count = earlier.number + 1 if earlier is not None else int(again)
    digest = sha256(repr((sorted(taken.names), sorted(taken.ranges.items()))).encode())
    attempt = Attempt(
        batch=number,
        number=count,
        definition=plan.definition,
        input=digest.hexdigest()[:16],
    )
    may_write()
    note_attempt(plan.place.checkpoint, attempt)
    if earlier is None and not again:
        return attempt, ""
    key = plan.batch_key(number).replace("'", "''")
    for table in (plan.place.quarantine, plan.place.late):
        may_write()
        delete_rows(session, table, f"{BATCH_KEY} = '{key}' AND _batch_id = {number}")
    if earlier is None or (why := attempt.differs_from(earlier)) is None:
        return attempt, ""
    return attempt, (
        f"batch {number} had been begun {_WHY[why]}: what that had left was taken back, and all of "
        "the batch was judged anew"
    )
