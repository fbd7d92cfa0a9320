"""Rows that Spark makes itself, and lines of a socket: for trials, because neither can be read again."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..checkpoint import Checkpoint
from ..spark.columns import DEFECT, RAW, RESCUED, SOURCE
from ..spec import RateSource
from .intake import BatchInput, Intake


class TrialIntake(Intake):
    """A source that never ends and begins anew with each run."""

    @property
    def total(self) -> int:
        """Not known."""
        return 0

    def open(self, spark: SparkSession) -> DataFrame:
        """Columns: timestamp and value (rate), value (socket)."""
        source, reader = self.source, spark.readStream.format(self.source.kind)
        if isinstance(source, RateSource):
            rows = {"rate": "rowsPerSecond", "rate-micro-batch": "rowsPerBatch"}[source.kind]
            frame = reader.options(**{rows: str(source.rows), **source.options}).load()
        else:
            frame = reader.option("host", source.host).option("port", str(source.port)).load()
        raw = F.col("value") if source.kind == "socket" else F.lit(None).cast("string")
        nothing = F.lit(None).cast("string")
        return frame.select(
            *frame.columns,
            raw.alias(RAW),
            nothing.alias(DEFECT),
            nothing.alias(RESCUED),
            F.lit(source.kind).alias(SOURCE),
        )

    def inspect(self, checkpoint: Checkpoint, batch: int) -> BatchInput:
        """Nothing is known of a batch before it is read."""
        return BatchInput(small=True)
