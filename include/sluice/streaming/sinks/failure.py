"""What to say when a batch does not reach its sink."""

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException

from ...errors import SluiceError, SpecError, TransientError
from ..transform import sql_message

SPARK_FAILED = (PySparkException, Py4JJavaError)
"""What a call into Spark raises, except for a JVM that is gone."""


def root_cause(error: Exception) -> str:
    """The innermost sentence of a Java error, or Spark's own."""
    causes = re.findall(r"(?:Caused by: |^: )([\w.$]+(?:Exception|Error)[^\n]*)", str(error), re.MULTILINE)
    return (causes[-1].strip() if causes else sql_message(error))[:400]


def explain_delivery(error: Exception, where: str) -> SluiceError:
    """One of our errors for one of Spark's: terminal where Spark says that it was asked for something it cannot do, else worth another try."""
    if isinstance(error, AnalysisException | IllegalArgumentException):
        return SpecError(f"Spark cannot write the batch: {sql_message(error)}", where=where, do="Mend the sink's options, or cast the column in the transform")
    return TransientError(f"the batch could not be written: {root_cause(error)}", where=where, do="Run again: what the batch left is completed or removed")
