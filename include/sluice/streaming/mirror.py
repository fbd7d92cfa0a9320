"""What the further sinks of a step with `groups` are given. They become what the target is: a batch
brings them all that the target holds now in the places whose rows it changed, and says where it
holds nothing any more. So batches may come late, twice, or one after a later one.

A place is what a sink replaces as one: a key of a table or topic, a partition of files.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import find_refresh
from ..checkpoint import Due, split_key
from ..errors import SinkError
from ..spark.columns import col
from ..spark.failure import SPARK_FAILED
from ..spark.history import is_feed_missing, is_history_gone
from ..spark.kept import keep_rows
from ..spark.pruning import Spans
from ..spark.tables import FEW_ROWS, Transaction, find_commit, frame_of, read_feed
from .comparing import MISSING, SURPLUS, comparable_columns, compare_groups
from .regroup import join_groups, only_groups

_PLACE = "_place"
_KIND, _VERSION, _TIME = "_change_type", "_commit_version", "_commit_timestamp"
"""Columns of the change feed beside the table's own."""
_CAME, _WENT = ("insert", "update_postimage"), ("delete", "update_preimage")


@dataclass(frozen=True)
class Change:
    """What a batch changed. `rows`: that the target holds now in the places of it. `gone`: places
    of which it holds none, one row each, named as the sink is `mirrored_by`; None where all of
    the target is meant."""

    rows: DataFrame
    gone: DataFrame | None = None


@contextmanager
def find_change(
    session: SparkSession, table: str, places: dict[str, str], due: Due, title: str
) -> Iterator[Change]:
    """What a batch changed. Args: places: column -> SQL over a row of the table; none where a sink
    replaces all that it has. title: of the sink.

    Raises SinkError where nobody can say any more what went with the batch.
    """
    held = frame_of(session, table)
    if due.whole or not places:
        yield Change(held)
        return
    marks = {f"{_PLACE}{number}": said for number, said in enumerate(places.values())}
    images = _read_images(session, table, due.key, title)
    with ExitStack() as kept:
        try:
            changed = kept.enter_context(keep_rows(_changed(images, marks)))
            spans = Spans.of(changed)
        except SPARK_FAILED as error:
            if is_feed_missing(error) or is_history_gone(error):
                raise _lost(due.key, title) from None
            raise
        few = spans.count <= FEW_ROWS
        there = held.where(spans.of_columns(marks, held.schema))
        there = there.withColumns({mark: F.expr(said) for mark, said in marks.items()})
        rows = kept.enter_context(keep_rows(only_groups(there, changed, few)))
        filled = rows.select(*marks).distinct()
        gone = join_groups(changed, filled, changed.columns, False, "left_anti")
        names = [col(mark).alias(name) for mark, name in zip(marks, places, strict=True)]
        yield Change(rows.drop(*marks), gone.select(*names))


def _read_images(session: SparkSession, table: str, key: str, title: str) -> DataFrame:
    """The rows that came and went with a batch, and with what others did to the table since the
    step's commit before (a row mended by hand, a RESTORE). Raises SinkError where the log does not
    have it any more."""
    home, number = split_key(key)
    commit = find_commit(session, table, Transaction(f"sluice/{home}", number))
    if commit is None or commit.version < 0:
        raise _lost(key, title)
    found = find_refresh(table, home.rpartition("/")[0], before=commit.version)
    first = commit.version if found is None else found[0] + 1
    return read_feed(session, table, first, commit.version)


def _changed(images: DataFrame, marks: dict[str, str]) -> DataFrame:
    """The places in which other rows stand than did."""
    told = [F.expr(said).alias(mark) for mark, said in marks.items()]
    own = images.drop(_VERSION, _TIME)
    columns = [*told, *comparable_columns(own.drop(_KIND))]
    came, went = (own.where(col(_KIND).isin(*kinds)).select(*columns) for kinds in (_CAME, _WENT))
    compared = compare_groups(came, went, list(marks))
    return compared.where(F.col(MISSING) + F.col(SURPLUS) > 0).select(*marks)


def _lost(key: str, title: str) -> SinkError:
    return SinkError(
        "what a batch took out of the target cannot be read any more: VACUUM, or the cleaning of "
        "the log, took the commit or its change feed, or somebody wrote while the feed was off",
        where=title,
        value=key,
        do=f"`sluice deliver NAME --sink '{title}' --all` makes the sink what the target is",
    )
