"""Idempotent writes to Delta: keyed by application id (pipeline, step, table, checkpoint generation) and batch, counted by their own commit.

A write whose key is already in the table does nothing, and its counts are read back from the commit it made the first time.
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
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from ..backlog import table_version
from ..errors import PreflightError
from ..spec import Step
from ..storage import Paths, in_bucket, is_remote, open_path, remove_tree

_log = logging.getLogger(__name__)
T = TypeVar("T")

CONFLICT_RETRIES = 8
"""Tries before the last one; where writers take turns there is no conflict at all."""
_APP, _VERSION = "spark.databricks.delta.write.txnAppId", "spark.databricks.delta.write.txnVersion"
_NOTE = "spark.databricks.delta.commitInfo.userMetadata"
_COPY_SOURCE = "spark.databricks.delta.merge.materializeSource"


@dataclass(frozen=True)
class Transaction:
    """The key of one batch's writes. `note`: counts that travel in the commit."""

    app_id: str
    batch: int
    note: dict = field(default_factory=dict)

    def as_json(self) -> str:
        """What the commit carries."""
        return json.dumps({"sluice": self.app_id, "batch": self.batch, **self.note})


@contextmanager
def _keyed(session: SparkSession, txn: Transaction, beats: str | None = None) -> Iterator[None]:
    """Set the write's key on the session of the batch, and take it off again: other writes of the session must not carry it.

    An insert-only MERGE reads its source once, so a copy of it buys nothing; one that replaces reads it twice, and Delta refuses rows held in memory there.
    """
    for key, value in (
        (_APP, txn.app_id),
        (_VERSION, str(txn.batch)),
        (_NOTE, txn.as_json()),
        (_COPY_SOURCE, "auto" if beats else "none"),
    ):
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key in (_APP, _VERSION, _NOTE, _COPY_SOURCE):
            session.conf.unset(key)


def frame_of(session: SparkSession, path: str, version: int | None = None) -> DataFrame:
    """A table's rows, as of now or of a version."""
    reader = session.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(path)


def ensure_table(
    spark: SparkSession,
    path: str,
    schema: StructType,
    partition_by: list[str] = (),
    cluster_by: list[str] = (),
    properties: dict[str, str] | None = None,
) -> None:
    """Create a table, or check that an existing one can take these columns. Raises PreflightError for a column whose type changed."""
    if table_version(path) is not None or (
        is_remote(path) and DeltaTable.isDeltaTable(spark, path)
    ):
        held = {f.name.lower(): f for f in spark.read.format("delta").load(path).schema.fields}
        for wanted in schema.fields:
            old = held.get(wanted.name.lower())
            if old is not None and old.dataType != wanted.dataType:
                raise PreflightError(
                    f"column {wanted.name!r} is {old.dataType.simpleString()} in the table and {wanted.dataType.simpleString()} in the step",
                    where=path,
                    do="Cast it back in the transform, or write to a new table (`sink.table`)",
                )
        return
    _clear_unborn_log(path)
    builder = (
        DeltaTable.createIfNotExists(spark)
        .location(path)
        .addColumns(StructType([_nullable(f) for f in schema.fields]))
    )
    builder = builder.partitionedBy(*partition_by) if partition_by else builder
    builder = builder.clusterBy(*cluster_by) if cluster_by else builder
    for key, value in (properties or {}).items():
        builder = builder.property(key, value)
    builder.execute()


def locate_target(spark: SparkSession, step: Step, paths: Paths) -> str:
    """Where a step's target lies: where the catalog says for a name it knows, else below the root; empty for a step without one."""
    name = step.target.name if step.target is not None else None
    if name is not None and spark.catalog.tableExists(name):
        return spark.sql(f"DESCRIBE DETAIL {name}").first()["location"].removeprefix("file:")  # noqa: S608 (a name of the pipeline's file, checked by Spark)
    return step.target_path(paths)


def register(spark: SparkSession, name: str, path: str) -> None:
    """Make a table known to the catalog under a name, where it is not."""
    if not spark.catalog.tableExists(name):
        spark.sql(f"CREATE TABLE {name} USING DELTA LOCATION '{path}'")  # noqa: S608


def _clear_unborn_log(path: str) -> None:
    """Remove a log folder without any commit: what a run leaves that was killed while it created the table, and Delta then takes for a table that is gone."""
    if is_remote(path) and not in_bucket(path):
        return  # a listing there may be an old one
    log = open_path(path) / "_delta_log"
    if log.exists() and not any(
        p.suffix in (".json", ".parquet") and p.name[0].isdigit() for p in log.iterdir()
    ):
        remove_tree(log)


def _nullable(field_: object) -> object:
    field_.nullable = True
    return field_


def _retry_conflicts(write: Callable[[], T]) -> T:
    """Try a write again that another writer's commit came before; it did nothing, and reads that commit the next time."""
    for attempt in range(CONFLICT_RETRIES):
        try:
            return write()
        except DeltaConcurrentModificationException as error:
            _log.info("another writer was first, trying again: %s", str(error).partition("\n")[0])
            time.sleep(random.uniform(0, 0.1 * 2**attempt))  # noqa: S311 (spreads writers, hides nothing)
    return write()


def insert_new(
    path: str, rows: DataFrame, condition: str, txn: Transaction, beats: str | None = None
) -> tuple[int, int]:
    """Insert the rows that match no row of the table (`t`) under a condition on `t` and `s`; the rows must be unique already.

    Args: beats: SQL under which `s` takes the place of the `t` it matches. Returns how many were inserted and how many replaced, from the commit itself
    when this batch is in the table already.
    """
    session = rows.sparkSession
    with _keyed(session, txn, beats):
        result = _retry_conflicts(partial(_merge, session, path, rows, condition, beats))
    if result:
        return result[0]["num_inserted_rows"], result[0]["num_updated_rows"]
    known = read_commit(session, path, txn.app_id, txn.batch)
    return known["inserted"], known["replaced"]


def _merge(
    session: SparkSession, path: str, rows: DataFrame, condition: str, beats: str | None
) -> list[Row]:
    merge = (
        DeltaTable.forPath(session, path)
        .alias("t")
        .merge(rows.alias("s"), condition)
        .withSchemaEvolution()
    )
    merge = merge.whenMatchedUpdateAll(beats) if beats else merge
    return merge.whenNotMatchedInsertAll().execute().collect()


def append(path: str, rows: DataFrame, txn: Transaction, replace_where: str | None = None) -> None:
    """Append rows under a key, or put them in place of the rows of a condition; nothing happens when this batch is in the table already."""
    with _keyed(rows.sparkSession, txn):
        writer = (
            rows.write.format("delta")
            .option("mergeSchema", "true")
            .option("txnAppId", txn.app_id)
            .option("txnVersion", str(txn.batch))
        )
        writer = (
            writer.mode("append")
            if replace_where is None
            else writer.mode("overwrite").option("replaceWhere", replace_where)
        )
        _retry_conflicts(lambda: writer.save(path))


def read_commit(session: SparkSession, path: str, app_id: str, batch: int) -> dict | None:
    """What an earlier write under this key left in its commit: its note, `inserted`, `replaced` and `version`; None when the table has no such write."""
    if table_version(path) is None:
        return None
    jvm = session._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, path)
    known = (
        log.update(False, getattr(log, "update$default$2")(), getattr(log, "update$default$3")())
        .transactions()
        .get(app_id)
    )
    if known.isEmpty() or int(str(known.get())) < batch:
        return None
    table = DeltaTable.forPath(session, path)
    for limit in (50, None):
        for row in (
            (table.history(limit) if limit else table.history())
            .select("version", "userMetadata", "operationMetrics")
            .toLocalIterator()
        ):
            note = (
                json.loads(row["userMetadata"])
                if (row["userMetadata"] or "").startswith("{")
                else {}
            )
            if note.get("sluice") == app_id and note.get("batch") == batch:
                metrics = row["operationMetrics"]
                inserted = int(
                    metrics.get("numTargetRowsInserted", metrics.get("numOutputRows", 0))
                )
                return {
                    **note,
                    "inserted": inserted,
                    "replaced": int(metrics.get("numTargetRowsUpdated", 0)),
                    "version": row["version"],
                }
    return {"inserted": 0, "replaced": 0, "lost": True}
