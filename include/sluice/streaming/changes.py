"""What changed in the inputs of a step with `groups` since its table was computed: the records that
came, went or were others before, each with its group; or why nobody can say.

A stream over each input tells only how far it is to be read. It gives the rows of commits that
append; those that update or delete it passes over, and their rows, as they are and as they were,
come from a batch read of the change feed: a stream of the feed says nothing of commits that were
made while the feed was off, a batch read refuses.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ..backlog.delta import read_commit
from ..spark.history import is_feed_missing
from ..spark.tables import frame_of, read_feed
from .planned import Made

_RANGES = 5
"""Runs of commits that are read each for itself; of more all between the first and the last is
read, and what is of another commit left out."""
NO_FEED = (
    "input {} has commits that changed or deleted rows while its change feed was off "
    "(`delta.enableChangeDataFeed`)"
)


@dataclass(frozen=True)
class Changes:
    """What changed. `images`: by input, rows of commits that changed rows, before and after.
    `why`: all has to be computed; empty where it has not. `lost`: because what changed cannot be
    read any more."""

    images: Mapping[str, DataFrame] = field(default_factory=dict)
    why: str = ""
    lost: bool = False


def find_changes(
    session: SparkSession, before: Made | None, now: Made, tables: Mapping[str, str]
) -> Changes:
    """What changed between what a table was computed from and what it is to be computed from.

    Args: tables: path of each input that is read commit by commit.
    """
    if before is None:
        return Changes(why="nothing was computed before")
    if before.query != now.query:
        return Changes(why="the query, its rules or Spark's settings are others than they were")
    for name, version in now.versions.items():
        if name not in before.versions:
            return Changes(why=f"input {name} is new")
        if name not in tables and version != before.versions[name]:
            said = f"static input {name} changed (version {before.versions[name]} -> {version})"
            return Changes(why=said)
    images = {}
    for name, path in tables.items():
        found = _find_in(session, name, path, (before.versions[name] + 1, now.versions[name]))
        if isinstance(found, Changes):
            return found
        if found is not None:
            images[name] = found
    return Changes(images)


def _find_in(
    session: SparkSession, name: str, path: str, span: tuple[int, int]
) -> Changes | DataFrame | None:
    """The images of one input's rows that changed in commits from the first to the last; None where
    none did."""
    changing = []
    for version in range(span[0], span[1] + 1):
        actions = read_commit(path, version)
        if actions is None:
            why = f"commits of input {name} from version {version} on are cleaned from its log"
            return Changes(why=why, lost=True)
        if any("metaData" in action for action in actions) and _is_reshaped(session, path, version):
            return Changes(why=f"the columns of input {name} changed with version {version}")
        if any(action.get("remove", {}).get("dataChange") for action in actions):
            changing.append(version)
    try:
        return read_images(session, path, changing) if changing else None
    except PySparkException as error:
        if not is_feed_missing(error):
            raise
        return Changes(why=NO_FEED.format(name), lost=True)


def _is_reshaped(session: SparkSession, path: str, version: int) -> bool:
    """True where a commit gave a table other columns; its properties change much the same way."""
    if not version:
        return True
    before, after = (frame_of(session, path, v).schema for v in (version - 1, version))
    return before != after


def read_images(session: SparkSession, path: str, versions: list[int]) -> DataFrame:
    """The rows of a table as some commits took them in and out, by its change feed."""
    runs = list(_list_runs(versions))
    if len(runs) <= _RANGES:
        read = (read_feed(session, path, *run) for run in runs)
        return reduce(DataFrame.unionByName, read)
    every = read_feed(session, path, versions[0], versions[-1])
    return every.where(every["_commit_version"].isin(versions))


def _list_runs(versions: list[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of versions that follow each other."""
    for _, run in groupby(enumerate(versions), lambda pair: pair[1] - pair[0]):
        found = [version for _, version in run]
        yield found[0], found[-1]
