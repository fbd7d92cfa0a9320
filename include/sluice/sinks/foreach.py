"""Batches handed to the user's Python: a class that gets row by row on the executors, or a function
that gets the batch on the driver.

Both are called at least once a batch: after a crash, or after they raised, the batch comes again,
with the same rows under the same number and token. User code makes that exactly once by keeping the
token (or partition and batch) together with what it writes, and passing over what it has.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, Row

from ..errors import SluiceError, SpecError, TransientError
from ..spark.columns import col
from ..spark.failure import SPARK_FAILED, explain_delivery
from ..spec import ForeachBatchSink, ForeachSink
from ..spec.user_code import load_code
from .delivery import Delivery
from .rows import comparable
from .writer import Preparation, Writer

_ROWS = 10_000
"""About as many of a partition."""
_AGAIN = "The batch comes again with the next run; mend the code if it raises the same"
_RAISED = re.compile(r"^RuntimeError: sluice: (.*)$", re.MULTILINE)


@lru_cache(maxsize=64)
def _load(folder: Path, reference: str, where: str, noun: str, modified: int) -> Callable:
    return load_code(folder, reference, where, noun)


def _load_once(folder: Path, reference: str, kind: str, noun: str) -> Callable:
    """The user's class or function; its module is executed once, so that what it keeps (a
    connection) lives from batch to batch."""
    path = folder / reference.partition(":")[0]
    return _load(
        folder,
        reference,
        f"{kind} {reference}",
        noun,
        path.stat().st_mtime_ns if path.is_file() else 0,
    )


def load_writer(sink: ForeachSink, folder: Path) -> type:
    """The class of a `foreach` sink.

    Raises SpecError when there is none, it has no `process`, or it cannot travel to the executors.
    """
    where = f"foreach {sink.writer}"
    writer = _load_once(folder, sink.writer, "foreach", "Class")
    if not isinstance(writer, type) or not callable(getattr(writer, "process", None)):
        raise SpecError(
            "it must be a class with a method `process(row)`",
            where=where,
            do="`open(partition, batch)` and `close(error)` may be there as well",
        )
    try:
        cloudpickle.dumps(writer)
    except Exception as error:  # pickle raises whatever it meets
        raise SpecError(
            f"the class cannot be sent to the executors: {error}",
            where=where,
            do="Make connections and locks in `open`, not in the module or the class",
        ) from error
    return writer


def load_batch_function(sink: ForeachBatchSink, folder: Path) -> Callable[[DataFrame, str], object]:
    """The function of a `foreach_batch` sink. Raises SpecError when there is none."""
    function = _load_once(folder, sink.function, "foreach_batch", "function")
    if not callable(function):
        raise SpecError(
            "it must be a function `(rows, token)`",
            where=f"foreach_batch {sink.function}",
            value=type(function).__name__,
        )
    return function


class ForeachWriter(Writer[ForeachSink]):
    """Hands rows to the user's class."""

    def prepare(self, coming: Preparation) -> None:
        """Raise SpecError for code that cannot be loaded, or that is not of the shape that is
        called."""
        load_writer(self.sink, coming.folder)

    def deliver(self, rows: DataFrame, delivery: Delivery) -> int:
        """Call the user's class for each partition of a batch, with the user's columns; counts rows
        of partitions it passed over as well.

        One instance a partition, made on the executor without arguments. `open(partition, batch)`:
        False passes over the partition's rows; a batch that comes again has the same number, and
        the same rows under each partition's. `close(error)` is called whenever `open` returned
        (or is not there), with what was raised or None. Raises SpecError as `load_writer`,
        TransientError when the class raised.
        """
        where = f"foreach {delivery.folder / self.sink.writer}"
        writer = load_writer(self.sink, delivery.folder)
        own = _split(rows.select(*[col(c) for c in delivery.columns]))
        try:
            return sum(own.rdd.mapPartitionsWithIndex(_play(writer, delivery.number)).collect())
        except SPARK_FAILED as error:
            raised = _RAISED.search(str(error))
            if raised is None:
                raise explain_delivery(error, where) from error
            raise TransientError(_told(raised[1], delivery), where=where, do=_AGAIN) from None


class ForeachBatchWriter(Writer[ForeachBatchSink]):
    """Hands batches to the user's function."""

    def prepare(self, coming: Preparation) -> None:
        """Raise SpecError for code that cannot be loaded, or that is no function."""
        load_batch_function(self.sink, coming.folder)

    def deliver(self, rows: DataFrame, delivery: Delivery) -> int:
        """Call the user's function with the user's columns of a batch and its token.

        Raises SpecError as `load_batch_function`, TransientError when the function raised; an error
        of `sluice.errors` that it raises passes as it is.
        """
        function = load_batch_function(self.sink, delivery.folder)
        rows = rows.select(*[col(c) for c in delivery.columns])
        try:
            function(rows, delivery.token)
        except SluiceError:
            raise
        except Exception as error:  # the user's code may raise anything
            name, text = self.sink.function.partition(":")[2], " ".join(str(error).split())[:400]
            raise TransientError(
                _told(f"{name} raised {type(error).__name__}: {text}", delivery),
                where=f"foreach_batch {delivery.folder / self.sink.function}",
                do=_AGAIN,
            ) from error
        return rows.count()


def _split(rows: DataFrame) -> DataFrame:
    """Rows in partitions that hang on what they say alone, not on the files they are read from:
    OPTIMIZE may have written those anew before the batch comes again."""
    said = [comparable(rows, name) for name in rows.columns]
    return rows.repartition(rows.count() // _ROWS + 1, *said).sortWithinPartitions(*said)


def _told(raised: str, delivery: Delivery) -> str:
    """What the user's code raised; where values are hidden without its text, which may quote a
    row."""
    return raised.partition(": ")[0] if delivery.hidden else raised


def _play(writer: type, batch: int) -> Callable[[int, Iterable[Row]], Iterable[int]]:
    """What an executor does with a partition.

    Everything it needs is in here: nested functions travel by value, modules do not.
    """

    def call(method: str, function: Callable, *arguments: object) -> object:
        try:
            return function(*arguments)
        except Exception as error:  # the user's code may raise anything
            text = " ".join(str(error).split())[:400]
            raise RuntimeError(
                f"sluice: {writer.__name__}.{method} raised {type(error).__name__}: {text}"
            ) from error

    def play(partition: int, rows: Iterable[Row]) -> Iterable[int]:
        instance: Any = call("__init__", writer)
        wanted = (
            not hasattr(instance, "open")
            or call("open", instance.open, partition, batch) is not False
        )
        count = 0
        raised: BaseException | None = None
        try:
            for row in rows:
                count += 1
                if wanted:
                    call("process", instance.process, row)
        except RuntimeError as error:
            raised = error.__cause__ or error
            raise
        finally:
            if hasattr(instance, "close"):
                call("close", instance.close, raised)
        return [count]

    return play
