"""How far the batch on its way is: by the parts of it that are over, and by the stages that Spark
works at."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from ..sources import BatchInput
from ..spark.stages import Stages, bytes_read_here, look_at_stages
from .laps import PARTS, Laps

_SHARES = dict(zip(PARTS, (0.5, 0.1, 0.3, 0.05, 0.05), strict=True))
"""What each part usually takes of a large batch's time."""


@dataclass
class Pace:
    """`share`: of the batch that is done, from 0 to 1; it never goes back. `records`: of it that
    tasks have read to their end. `before`: bytes that the JVM had read before it."""

    taken: BatchInput
    laps: Laps
    share: float = 0.0
    records: int = 0
    before: int | None = None

    def look(self, spark: SparkSession, pool: str | None = None) -> None:
        """Ask Spark. Args: pool: of the scheduler, where the step is not alone."""
        ended, stages = self.laps.seconds, look_at_stages(spark, pool)
        rest = [part for part in PARTS if part not in ended]
        if PARTS[0] in rest:
            self.records = max(self.records, stages.records)
            here = bytes_read_here(spark) if pool is None else 0  # nobody tells whose they are
            within = max(self._read(stages, here), stages.share)
        else:
            within = stages.share
        share = sum(_SHARES[part] for part in PARTS if part not in rest)
        share += _SHARES[rest[0]] * min(within, 1.0) if rest else 0.0
        self.share = max(self.share, min(share, 1.0))

    def _read(self, stages: Stages, here: int) -> float:
        """The part of the input that is read, where Spark and we count it alike."""
        self.before = here if self.before is None else self.before
        if self.taken.bytes:
            return max(stages.bytes, here - self.before) / self.taken.bytes
        return stages.records / self.taken.amount if self.taken.fetched else 0.0
