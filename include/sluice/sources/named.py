"""Files that are known by name, handed to Spark so that it lists nothing.

Spark's file source takes one path, and a glob of names costs three requests a file, one after the other, and knows no name with a colon. But where a folder
holds the log that Spark's own file sink keeps of what it wrote, the source reads that log instead of listing. So the names go into such a log.
"""

import json

from pyspark.sql import DataFrame, SparkSession

from ..backlog import LandedFile
from ..spec import FileSource
from ..storage import open_path, replace_file
from .files import FileIntake

_BLOCK = 32 * 2**20


class NamedFileIntake(FileIntake):
    """Files of a bucket that a queue named. `folder`: where the log of their names is written, anew for each stream."""

    def __init__(self, source: FileSource, files: list[LandedFile], folder: str) -> None:
        super().__init__(source, files, path=folder)

    def open(self, spark: SparkSession) -> DataFrame:
        """Every record of every file; see FileIntake."""
        log = open_path(self.path) / "_spark_metadata"
        log.mkdir(parents=True, exist_ok=True)
        replace_file(
            log / "0",
            "\n".join(["v1", *(json.dumps(_sink_entry(spark, landed)) for landed in self.files)]),
        )
        return super().open(spark)


def _sink_entry(spark: SparkSession, landed: LandedFile) -> dict:
    """A file as Spark's sink logs it. The address is written by Java: the checkpoint knows a file by its very characters, and a listing writes them this way."""
    address = spark._jvm.org.apache.hadoop.fs.Path(landed.path).toUri().toString()
    return {
        "path": address,
        "size": landed.size,
        "isDir": False,
        "modificationTime": int(landed.modified * 1000),
        "blockReplication": 1,
        "blockSize": _BLOCK,
        "action": "add",
    }
