"""Sends the further sinks of a step what they lack, without a look at its source."""

from datetime import UTC, datetime

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from ..checkpoint import Checkpoint, Due, noted_generation
from ..errors import SpecError
from ..spark.columns import BATCH_KEY, own_columns
from ..spark.executors import fit_to_executors
from ..spark.tables import frame_of, written_batches
from ..spec import Refill, Step
from .following import Followers
from .outlet import Outlet
from .owing import due_whole
from .run import Run
from .tally import Tally


def choose_sinks(step: Step, wanted: Refill) -> list[str]:
    """The titles of the further sinks that are meant.

    Raises SpecError where the step has none of that name.
    """
    titles = list(step.followers)
    if wanted.sink is None:
        return titles
    if wanted.sink not in titles:
        raise SpecError(
            "the step has no such sink",
            where=f"{step.name}: --sink",
            value=wanted.sink,
            do=f"There are: {', '.join(titles) or 'none that follow a table'}",
        )
    return [wanted.sink]


def deliver_step(run: Run, step: Step, tally: Tally, wanted: Refill) -> None:
    """Send what is due, and before it what is asked for as well.

    Raises SpecError where nothing follows a table; what the sinks refuse stays due.
    """
    titles, path = choose_sinks(step, wanted), tally.facts.target
    if not titles or not path:
        return
    fit_to_executors(run.spark, run.pipeline.spark)
    table = frame_of(run.spark, path)
    outlet = Outlet(
        path,
        step.dedup is not None and bool(step.dedup.order_by),
        table.schema,
        own_columns(table.schema.names),
        step.key_names,
        run.pipeline.folder,
        run.paths.root,
        frozenset(run.pipeline.pii),
        run.where(step),
        mirrored=bool(step.groups),
    )
    home = f"{run.paths.home(step.name)}/{noted_generation(tally.checkpoint)}"
    followers = Followers(run, step, outlet, home, titles)
    followers.open(tally, Checkpoint.below(tally.checkpoint).open_batch)
    prefix = run.paths.home(step.name)
    asked = _asked(f"{prefix}/", wanted)
    if asked is not None and outlet.mirrored:
        written = written_batches(run.spark, path, prefix)
        dues = _ask_mirrored(outlet, run.spark, written, home, wanted)
        followers.demand(dues, bool(wanted.keys), tally)
    elif asked is not None:
        counts, now = outlet.count_batches(run.spark, asked), datetime.now(UTC)
        dues = [Due(key=k, rows=rows, since=now, again=True) for k, rows in counts.items()]
        followers.demand(dues, bool(wanted.keys), tally)
        _tell_older(tally, table.where(F.col(BATCH_KEY).isNull()).count())
    followers.follow(run.spark, tally)


def _asked(prefix: str, wanted: Refill) -> Column | None:
    """The rows of batches that are asked for; None where only what is due is."""
    own = F.col(BATCH_KEY).startswith(prefix)
    if wanted.keys:
        return own & F.col(BATCH_KEY).isin(wanted.keys)
    if wanted.since is not None:
        return own & (F.col("_ingested_at") >= F.lit(wanted.since))
    return own if wanted.everything else None


def _ask_mirrored(
    outlet: Outlet, session: SparkSession, written: dict[str, int], home: str, wanted: Refill
) -> list[Due]:
    """Batches of a step with `groups` that are asked for by their keys, or else the whole target:
    of what went since a time its rows tell nothing. Args: written: newest batch by generation.
    home: the generation at work."""
    if not wanted.keys:
        whole = due_whole(outlet, session, written, home)
        return [] if whole is None else [whole]
    counts, now = outlet.count_batches(session, F.lit(True)), datetime.now(UTC)
    there = {f"{one}/{n}" for one, newest in written.items() for n in range(newest + 1)}
    return [
        Due(key=key, rows=counts.get(key, 0), since=now, again=True, mirrored=True)
        for key in wanted.keys
        if key in there
    ]


def _tell_older(tally: Tally, rows: int) -> None:
    if rows:
        tally.warn(
            f"{rows:,} row(s) of the target were written before batches had keys: no sink is sent "
            "them, because nothing tells which of them it has"
        )
