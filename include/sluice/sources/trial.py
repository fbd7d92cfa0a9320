"""Rows that Spark makes itself, and lines of a socket: for trials, because neither can be read
again."""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ..checkpoint import Checkpoint
from ..spark.columns import DEFECT, RAW, RESCUED, SOURCE
from ..spec import TrialSource
from .intake import BatchInput, Intake


class TrialIntake(Intake[TrialSource]):
    """A source that never ends and begins anew with each run."""

    @property
    def total(self) -> int:
        """Not known."""
        return 0

    def open(self, spark: SparkSession) -> DataFrame:
        """Spark's own columns: timestamp and value (rate), value (socket)."""
        kind, nothing = self.source.kind, F.lit(None).cast("string")
        frame = spark.readStream.format(kind).options(**self.source.reader_options).load()
        return frame.select(
            *frame.columns,
            self._raw().alias(RAW),
            nothing.alias(DEFECT),
            nothing.alias(RESCUED),
            F.lit(kind).alias(SOURCE),
        )

    def _raw(self) -> Column:
        """The record as it came."""
        return F.lit(None).cast("string")

    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """Nothing is known of a batch before it is read."""
        return BatchInput(costly=True)


class SocketIntake(TrialIntake):
    """Lines that somebody sends."""

    def _raw(self) -> Column:
        return F.col("value")
