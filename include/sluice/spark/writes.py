"""Writes into Delta tables, each done once.

A write is keyed by an application id and a number: one whose number is in the table already does
nothing. What a write did is read from its own commit, so it is counted by what did it.
"""

import logging
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from delta import exceptions
from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F

from ..backlog import table_version
from ..backlog.delta import find_commit_info
from ..errors import TransientError
from .columns import col, quote
from .table_setup import clear_unborn_log, table_exists
from .tables import (
    GIVEN,
    Commit,
    Keyed,
    Transaction,
    between_keys,
    find_new,
    frame_of,
    read_shape,
    without,
)

_log = logging.getLogger(__name__)
T = TypeVar("T")

CONFLICT_RETRIES = 8
"""Tries before the last one; where writers take turns there is no conflict at all."""


class _MadeMeanwhile(Exception):
    """Raised where a write was to make a table, and another writer has."""


_CONFLICTS = (
    _MadeMeanwhile,
    exceptions.ConcurrentAppendException,
    exceptions.ConcurrentDeleteDeleteException,
    exceptions.ConcurrentDeleteReadException,
    exceptions.ConcurrentTransactionException,
    exceptions.ConcurrentWriteException,
    exceptions.DeltaConcurrentModificationException,
    exceptions.MetadataChangedException,
    exceptions.ProtocolChangedException,
)
"""Of Delta's, in Python none is a kind of another, as they are in Java."""
_THERE = "DELTA_PATH_EXISTS"
_APP = "spark.databricks.delta.write.txnAppId"
_VERSION = "spark.databricks.delta.write.txnVersion"
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"
_MARKER = "_goes"
"""Of a row that stands for a group whose rows go."""
_COPY_SOURCE = "spark.databricks.delta.merge.materializeSource"


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


def _retry_conflicts(write: Callable[[], T]) -> T:
    """Try a write again that another writer's commit came before: it did nothing."""
    for attempt in range(CONFLICT_RETRIES):
        try:
            return write()
        except _CONFLICTS as error:
            _log.info("another writer was first, trying again: %s", str(error).partition("\n")[0])
            time.sleep(random.uniform(0, 0.1 * 2**attempt))  # noqa: S311 (spreads writers, hides nothing)
    return write()


def insert_new(
    path: str, batch: Keyed, condition: str, txn: Transaction, beats: str | None = None
) -> Commit:
    """Insert the rows (`s`) that match no row of the table (`t`), which they make where it is not.

    By an append of those that find no match: it sorts neither the table nor the batch by key
    (measured, 10,000 rows against 2,900,000: 18 and not 25 CPU-seconds of a run). It reads the
    table within its own transaction, so that Delta checks it against other writers as it does a
    MERGE. Of many rows by a MERGE into an empty table. That counts what it is given itself, and so
    does a write that makes a table.

    Args:
        condition: SQL under which `s` is a copy of `t`; their keys are equal then.
        beats: SQL under which `s` takes the place of the `t` it matches; always a MERGE.
    """
    session = batch.rows.sparkSession

    def write() -> None:
        if not table_exists(session, path):
            with _keyed(session, txn):
                _append_first(path, batch.rows, txn)
        elif beats is not None or not (batch.few or read_shape(session, path).size):
            with _keyed(session, txn):
                _merge(session, path, batch.rows, condition, beats)
        else:
            # Counted of what the write is given, which is not yet known to be what it should be.
            table, given = between_keys(frame_of(session, path), batch)
            noted = replace(txn, note={**txn.note, GIVEN: given})
            with _keyed(session, noted):
                _append_new(path, table, batch, condition, noted)

    _retry_conflicts(write)
    return _commit_of(path, txn)


def _merge(
    session: SparkSession, path: str, rows: DataFrame, condition: str, beats: str | None
) -> None:
    merge = DeltaTable.forPath(session, path).alias("t").merge(rows.alias("s"), condition)
    merge = merge.withSchemaEvolution()
    merge = merge.whenMatchedUpdateAll(beats) if beats else merge
    merge.whenNotMatchedInsertAll().execute()


def _append_new(
    path: str, table: DataFrame, batch: Keyed, condition: str, txn: Transaction
) -> None:
    shape = read_shape(table.sparkSession, path, again=False)
    if batch.few and not shape.size:
        # Read all the same, in one step: another writer may be first.
        new = without(batch.rows, table, condition)
    else:
        new = find_new(table, batch, condition)
    if shape.partitions:
        new = new.repartition(*map(col, shape.partitions))  # as a MERGE does: few files
    _append_to(new, txn).save(path)


def append(
    path: str, rows: DataFrame, txn: Transaction, replace_where: str | None = None
) -> Commit:
    """Append rows under a key, or put them in place of the rows of a condition. Where there is no
    table, rows that are appended make it."""

    def write() -> None:
        writer = _append_to(rows, txn)
        if replace_where is not None:
            writer.mode("overwrite").option("replaceWhere", replace_where).save(path)
        elif table_exists(rows.sparkSession, path):
            writer.save(path)
        else:
            _append_first(path, rows, txn)

    with _keyed(rows.sparkSession, txn):
        _retry_conflicts(write)
    return _commit_of(path, txn)


def _append_first(path: str, rows: DataFrame, txn: Transaction) -> None:
    """Make a table by its first rows, in one commit: a table that is made before them costs a
    second one, and has its state computed for nothing. Raises _MadeMeanwhile."""
    clear_unborn_log(path)
    try:
        _append_to(rows, txn).mode("error").save(path)
    except AnalysisException as error:
        if error.getCondition() == _THERE:
            raise _MadeMeanwhile(str(error)) from error
        raise


def replace_groups(
    path: str, rows: DataFrame, gone: DataFrame, where: str, txn: Transaction
) -> Commit:
    """Put rows in the place of all that a table holds of some groups, in one commit.

    A MERGE whose source has a marker beside the rows for each group that goes: the marker meets all
    rows of its group and deletes them, the rows meet nothing and come in. So a group may have any
    number of rows before and after, and NULL is a group like any other.

    Args:
        rows: with the table's columns.
        gone: those groups, one row each, with the columns that tell them.
        where: SQL over the table `t` that holds for every row of them, by which files are left out.
    """
    names = gone.columns
    marked = rows.withColumn(_MARKER, F.lit(False)).unionByName(
        gone.withColumn(_MARKER, F.lit(True)), allowMissingColumns=True
    )
    same = [f"t.{quote(name)} <=> s.{quote(name)}" for name in names]
    condition = " AND ".join([f"s.{_MARKER}", *same, f"({where})"])
    values: dict[str, str | Column] = {quote(name): f"s.{quote(name)}" for name in rows.columns}

    def write() -> None:
        merge = DeltaTable.forPath(rows.sparkSession, path).alias("t")
        found = merge.merge(marked.alias("s"), condition).whenMatchedDelete()
        found.whenNotMatchedInsert(f"NOT s.{_MARKER}", values).execute()

    with _keyed(rows.sparkSession, txn):
        _retry_conflicts(write)
    return _commit_of(path, txn)


def _append_to(rows: DataFrame, txn: Transaction) -> DataFrameWriter:
    writer = rows.write.format("delta").mode("append").option("mergeSchema", "true")
    return writer.option("txnAppId", txn.app_id).option("txnVersion", str(txn.number))


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
