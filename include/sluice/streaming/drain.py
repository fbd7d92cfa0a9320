"""Runs one query until the backlog is gone, its end has come or the time is up."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming import StreamingQuery

from ..spark.failure import explain
from ..spark.jvm import JVM_GONE
from ..spec import AVAILABLE_NOW, Trigger
from .trigger import trigger_options

_EMPTY_ON_START = "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart"


class OutOfTime(Exception):
    """Raised between two batches when the run's time budget is spent."""


class _Batches:
    """Calls `process` with each batch until `last`, a `time.monotonic()`; knows whether one is on
    its way."""

    def __init__(self, process: Callable[[DataFrame, int], None], last: float) -> None:
        self.process, self.last = process, last
        self.failures: list[Exception] = []
        self._lock, self._running, self._newest = Lock(), False, -1

    def __call__(self, frame: DataFrame, batch: int) -> None:
        try:
            with (
                self._lock
            ):  # who asks after `last` either sees this batch or keeps it from starting
                if time.monotonic() > self.last:
                    raise OutOfTime
                self._newest, self._running = batch, True
            self.process(frame, batch)
        except Exception as error:  # some of the JVM's come as py4j's own error
            self.failures.append(error)
            raise
        finally:
            self._running = False

    def are_settled(self, query: StreamingQuery) -> bool:
        """True when no batch is in work and Spark has committed the newest: its progress is told
        after that."""
        with self._lock:
            running = self._running
        return not running and (
            self._newest < 0 or (query.lastProgress or {"batchId": -1})["batchId"] >= self._newest
        )


@dataclass(frozen=True)
class Query:
    """How a stream is run.

    `checkpoint`: folder of Spark's checkpoint. `deadline`, `end`: by `time.monotonic()`; no batch
    starts after either, and one that then runs longer than `grace` seconds more is cut off and
    comes again. `each_second`: called while it runs; what it raises ends the query. `mode`: append
    or update. `settings`: of Spark, for this query.
    """

    checkpoint: str
    deadline: float
    each_second: Callable[[], None] = lambda: None
    trigger: Trigger = AVAILABLE_NOW
    end: float | None = None
    mode: str = "append"
    grace: float = 120.0
    settings: Mapping[str, str] = field(default_factory=dict)
    own_state: bool = False

    @property
    def last(self) -> float:
        """When the last batch may start."""
        return self.deadline if self.end is None else min(self.end, self.deadline)


def drain(stream: DataFrame, process: Callable[[DataFrame, int], None], how: Query) -> bool:
    """Run a stream until its query ends by itself, or between two batches at its end; returns
    whether it ended by itself.

    Args: process: called with each batch and its id.
    Raises OutOfTime at the deadline (unless that is the end), UnreadableFile and what `process`
    raised.
    """
    batches = _Batches(process, how.last)
    # Spark would refuse for good a checkpoint whose first plan broke off half-way and left a hidden
    # file. That it is nobody else's is known from its manifest and its lease.
    for name, value in {_EMPTY_ON_START: "false", **how.settings}.items():
        stream.sparkSession.conf.set(name, value)
    writer = stream.writeStream.foreachBatch(batches).outputMode(how.mode)
    writer = writer.option("checkpointLocation", how.checkpoint)
    query = writer.trigger(**trigger_options(how.trigger)).start()
    try:
        return _await_end(query, batches, how)
    except PySparkException as error:
        first = batches.failures[-1] if batches.failures else error
        if isinstance(first, OutOfTime) and how.end is not None:
            return False
        raise explain(first, how.own_state) from None
    finally:
        _stop(query)


def _await_end(query: StreamingQuery, batches: _Batches, how: Query) -> bool:
    while not wait_a_moment(query, None if how.end is None else how.last):
        how.each_second()
        over = time.monotonic() - how.last
        if over > how.grace:
            raise OutOfTime
        if how.end is not None and over > 0 and batches.are_settled(query):
            return False
    return True


def wait_a_moment(query: StreamingQuery, last: float | None = None) -> bool:
    """Wait a second for a query to end, or until `last` where that comes sooner; whether it has
    ended. PySpark takes parts of a second, whatever its types say."""
    wait = 1.0 if last is None else min(1.0, max(0.1, last - time.monotonic()))
    return bool(query.awaitTermination(wait))  # type: ignore[arg-type]


def _stop(query: StreamingQuery) -> None:
    with suppress(*JVM_GONE):
        if query.isActive:
            query.stop()
