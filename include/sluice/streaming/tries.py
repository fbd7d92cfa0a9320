"""The tries of a batch: each is numbered before its first write, and what an earlier one left half
done is taken back before a row is judged anew.

Rows of a half-done try are nobody's yet. Its checkpoint's next try takes them back, and another
checkpoint that meets them first (a backfill, or one that was begun anew) takes them over: they
count where they are judged to the end, and never as what another row is a copy of.
"""

from hashlib import sha256

from pyspark.sql import SparkSession

from ..backlog import table_version
from ..checkpoint import Attempt, Checkpoint, Rights, note_attempt, note_stretch, read_attempt
from ..sources import BatchInput
from ..spark.columns import BATCH_KEY
from ..spark.tables import frame_of, newest_writes
from ..spark.writes import delete_rows
from .plan import Plan

_WHY = {
    "definition": "under another definition (rules, schema, transform, event time or dedup)",
    "input": "over another input",
}


def take_back(plan: Plan, rights: Rights, number: int, session: SparkSession) -> None:
    """Remove the refused and late rows of earlier tries of a batch that has no target commit.

    So a batch is finished under one definition, over one input.
    """
    if number != plan.open_batch and read_attempt(plan.place.checkpoint, number) is None:
        return
    key = plan.batch_key(number).replace("'", "''")
    with rights.turn(plan.step.name, plan.table) as may_write:
        for table in (plan.place.quarantine, plan.place.late):
            may_write()
            delete_rows(session, table, f"{BATCH_KEY} = '{key}' AND _batch_id = {number}")


def unfinished(plan: Plan, table: str, session: SparkSession) -> str | None:
    """SQL under which a row `t` of a table of refused or late rows is of another checkpoint's batch
    that has no commit in the target; None where there is no such batch."""
    if not plan.target.exists:
        return None
    done = newest_writes(session, plan.target.path)
    begun = {
        app_id: done.get(app_id, -1)
        for app_id, version in newest_writes(session, table).items()
        if app_id != plan.place.app_id and Attempt.batch_of(version) > done.get(app_id, -1)
    }
    terms = [
        f"(t._batch_id > {newest} AND startswith(t.{BATCH_KEY}, '{app_id[len('sluice/') :]}/'))"
        for app_id, newest in sorted(begun.items())
    ]
    return " OR ".join(terms) or None


def describe_abandoned(plan: Plan, session: SparkSession) -> list[str]:
    """What nobody will finish or take over: refused rows of a batch that was cut off, and whose
    checkpoint was removed, of a step that compares no rows."""
    place = plan.place
    if plan.step.dedup is not None or Checkpoint.below(place.checkpoint).newest_commit is not None:
        return []
    if table_version(place.quarantine) is None:
        return []
    cut_off = unfinished(plan, place.quarantine, session)
    if cut_off is None:
        return []
    rows = frame_of(session, place.quarantine).alias("t").where(cut_off).count()
    if not rows:
        return []
    mend = f"DELETE FROM delta.`{place.quarantine}` AS t WHERE {cut_off}"  # noqa: S608 (for a person)
    return [
        f"{rows:,} row(s) in quarantine are of a batch that was cut off, and whose checkpoint is "
        "gone: no report counts them, and what was read again stands beside them. To remove them: "
        f"{mend}"
    ]


def begin_try(plan: Plan, number: int, taken: BatchInput) -> tuple[Attempt, str]:
    """Note a try before its first write. Out: the try, and what a person should know of the one
    before it (empty most often)."""
    earlier = read_attempt(plan.place.checkpoint, number)
    tries = earlier.number + 1 if earlier is not None else int(number == plan.open_batch)
    digest = sha256(repr((sorted(taken.names), sorted(taken.ranges.items()))).encode())
    attempt = Attempt(
        batch=number,
        number=tries,
        definition=plan.definition,
        input=digest.hexdigest()[:16],
    )
    note_attempt(plan.place.checkpoint, attempt)
    if plan.apart:
        note_stretch(plan.place.checkpoint, number, plan.inputs.positions, plan.apart)
    changed = attempt.differs_from(earlier) if earlier is not None else None
    if changed is None:
        return attempt, ""
    return attempt, (
        f"batch {number} had been begun {_WHY[changed]}: what that had left was taken back, and "
        "all of the batch was judged anew"
    )
