"""What a thread has to itself where several work in one application."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from .jvm import jvm_of

_POOL = "spark.scheduler.pool"


@contextmanager
def own_session(spark: SparkSession, pool: str) -> Iterator[SparkSession]:
    """A copy of a session for this thread, as Spark makes one for each query: what is set in it,
    and the views it is given, are nobody else's. The thread's jobs run in a pool of the scheduler.

    What has no session at hand asks for the active one: it is the copy's turn.
    """
    copied = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    jvm_of(spark).SparkSession.setActiveSession(copied._jsparkSession)
    spark.sparkContext.setLocalProperty(_POOL, pool)
    try:
        yield copied
    finally:
        jvm_of(spark).SparkSession.clearActiveSession()
        spark.sparkContext.setLocalProperty(_POOL, None)  # type: ignore[arg-type]
