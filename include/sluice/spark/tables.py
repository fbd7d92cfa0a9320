"""Delta tables: made, read, and written once for each batch.

A write is keyed by an application id and a number: one whose number is in the table already does
nothing. What a write did is read from its own commit, so it is counted by what did it.
"""

import json
import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from delta.exceptions import DeltaConcurrentModificationException
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from ..backlog import table_version
from ..backlog.delta import find_commit_info
from ..errors import TransientError
from .jvm import jvm_of

_log = logging.getLogger(__name__)
T = TypeVar("T")

CONFLICT_RETRIES = 8
"""Tries before the last one; where writers take turns there is no conflict at all."""
_APP = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"
_COPY_SOURCE = "spark.databricks.delta.merge.materializeSource"


@dataclass(frozen=True)
class Transaction:
    """The key of one write. `note`: what travels in its commit, as JSON.

    `number` only grows under one `app_id`: Delta passes over a write whose number is not above
    the last one.
    """

    app_id: str
    number: int
    note: dict = field(default_factory=dict)

    def as_json(self) -> str:
        """What the commit carries."""
        return json.dumps({"sluice": self.app_id, "number": self.number, **self.note})

    def marks(self, metadata: dict) -> bool:
        """True for the metadata of a commit that was made under this key."""
        number = metadata.get("number", metadata.get("batch"))  # `batch`: before tries had numbers
        return metadata.get("sluice") == self.app_id and number == self.number


@dataclass(frozen=True)
class Commit:
    """What one commit did, in rows, by Delta's own metrics. `note`: what it carries."""

    version: int
    note: dict
    given: int = 0
    """Rows it was given (MERGE), or that it wrote (append)."""
    inserted: int = 0
    replaced: int = 0
    removed: int = 0

    @classmethod
    def read(cls, version: int, metadata: dict, metrics: dict[str, str]) -> "Commit":
        """A commit from its metadata and its operation's metrics.

        `numOutputRows` counts rows that were copied because their file was replaced in part;
        `numCopiedRows` says how many.
        """
        numbers = {name: int(value) for name, value in metrics.items() if value.isdigit()}
        written = numbers.get("numOutputRows", 0) - numbers.get("numCopiedRows", 0)
        inserted = numbers.get("numTargetRowsInserted", written)
        return cls(
            version,
            metadata,
            given=numbers.get("numSourceRows", inserted),
            inserted=inserted,
            replaced=numbers.get("numTargetRowsUpdated", 0),
            removed=numbers.get("numDeletedRows", 0),
        )


@contextmanager
def _keyed(session: SparkSession, txn: Transaction) -> Iterator[None]:
    """Set the write's key on the session of the batch, and take it off again: other writes of the
    session must not carry it.

    A MERGE is given rows that are kept already, so Delta's own copy of them would buy nothing.
    """
    settings = {_APP: txn.app_id, _VERSION: str(txn.number), _NOTE: txn.as_json()}
    settings[_COPY_SOURCE] = "none"
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            session.conf.unset(key)


def frame_of(session: SparkSession, path: str, version: int | None = None) -> DataFrame:
    """A table's rows, as of now or of a version."""
    reader = session.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(path)


def _retry_conflicts(write: Callable[[], T]) -> T:
    """Try a write again that another writer's commit came before: it did nothing."""
    for attempt in range(CONFLICT_RETRIES):
        try:
            return write()
        except DeltaConcurrentModificationException as error:
            _log.info("another writer was first, trying again: %s", str(error).partition("\n")[0])
            time.sleep(random.uniform(0, 0.1 * 2**attempt))  # noqa: S311 (spreads writers, hides nothing)
    return write()


def insert_new(
    path: str, rows: DataFrame, condition: str, txn: Transaction, beats: str | None = None
) -> Commit:
    """Insert the rows (`s`) that match no row of the table (`t`); they must be unique already.

    Args:
        condition: SQL under which `s` is a copy of `t`.
        beats: SQL under which `s` takes the place of the `t` it matches.
    """
    session = rows.sparkSession
    with _keyed(session, txn):
        _retry_conflicts(partial(_merge, session, path, rows, condition, beats))
    return _commit_of(path, txn)


def _merge(
    session: SparkSession, path: str, rows: DataFrame, condition: str, beats: str | None
) -> None:
    merge = DeltaTable.forPath(session, path).alias("t").merge(rows.alias("s"), condition)
    merge = merge.withSchemaEvolution()
    merge = merge.whenMatchedUpdateAll(beats) if beats else merge
    merge.whenNotMatchedInsertAll().execute()


def append(
    path: str, rows: DataFrame, txn: Transaction, replace_where: str | None = None
) -> Commit:
    """Append rows under a key, or put them in place of the rows of a condition."""
    with _keyed(rows.sparkSession, txn):
        writer = rows.write.format("delta").option("mergeSchema", "true")
        writer = writer.option("txnAppId", txn.app_id).option("txnVersion", str(txn.number))
        if replace_where is None:
            writer = writer.mode("append")
        else:
            writer = writer.mode("overwrite").option("replaceWhere", replace_where)
        _retry_conflicts(lambda: writer.save(path))
    return _commit_of(path, txn)


def delete_rows(session: SparkSession, path: str, condition: str) -> None:
    """Delete the rows of a condition; nothing where the table is not there."""
    if table_version(path) is not None:
        _retry_conflicts(lambda: DeltaTable.forPath(session, path).delete(condition))


def _commit_of(path: str, txn: Transaction) -> Commit:
    """The commit that a write has just made. Raises TransientError where there is none."""
    found = find_commit_info(path, txn.marks)
    if found is None:
        raise TransientError(
            "a write left no commit of its own: another run wrote this batch meanwhile",
            where=path,
            value=f"{txn.app_id} {txn.number}",
            do="Run again: the batch comes again, and its rows are found by its key",
        )
    return Commit.read(*found)


def written_batches(session: SparkSession, path: str, prefix: str) -> dict[str, int]:
    """Checkpoint generations of a step that wrote to a table -> the newest batch of each.

    Args: prefix: `pipeline/step`. By Delta's own record of transactions, which outlives the log's
    commits, OPTIMIZE and VACUUM.
    """
    found = newest_writes(session, path)
    own = {app_id.removeprefix("sluice/"): number for app_id, number in found.items()}
    return {name: number for name, number in own.items() if name.startswith(f"{prefix}/")}


def newest_writes(session: SparkSession, path: str) -> dict[str, int]:
    """Application id -> the number of its newest write; none where the table is not there."""
    if table_version(path) is None:
        return {}
    jvm = jvm_of(session)
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
    defaults = (getattr(log, f"update$default${place}")() for place in (2, 3))
    known = log.update(False, *defaults).transactions()
    java = jvm.scala.jdk.javaapi.CollectionConverters.asJava(known)
    return {str(app_id): int(number) for app_id, number in java.items()}


def find_commit(session: SparkSession, path: str, txn: Transaction) -> Commit | None:
    """What an earlier write under a key left in its commit; None when the table has none.

    A commit without a note: the table has the write, but its file is cleaned from the log.
    """
    if newest_writes(session, path).get(txn.app_id, -1) < txn.number:
        return None
    found = find_commit_info(path, txn.marks)
    return Commit(-1, {}) if found is None else Commit.read(*found)
