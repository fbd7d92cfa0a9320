"""The streaming query whose batch is worked at: several may run at once in one application."""

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

from .jvm import jvm_of

_ID = "sql.streaming.queryId"
"""The local property by which Spark lets a batch know its query; a thread of Python that Spark
calls back shares the properties of the one that calls."""


def query_of_batch(spark: SparkSession) -> JavaObject:
    """The execution of the query whose batch this thread works at.

    Args: spark: any session of the application: a batch has one of its own, which starts no
    queries. Raises LookupError outside of a batch.
    """
    known = spark.sparkContext.getLocalProperty(_ID)
    if known is None:
        raise LookupError("this thread works at no batch of a streaming query")
    running = spark._jsparkSession.sharedState().activeStreamingQueries()
    return running.get(jvm_of(spark).java.util.UUID.fromString(known))
