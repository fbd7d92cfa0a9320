"""Files that are known by name, because a queue named them, because they are few in a crowded
folder or because Spark does not know the old ones, handed to Spark so that it lists nothing.

Spark's file source takes one path, and a glob of names costs three requests a file, one after the
other, and knows no name with a colon. But where a folder holds the log that Spark's own file sink
keeps of what it wrote, the source reads that log instead of listing. So the names go into such a
log.
"""

import json
import re

from pyspark.sql import SparkSession

from ..backlog import LandedFile
from ..spark.jvm import java_uri
from ..storage import is_remote, open_path, replace_file

_BLOCK = 32 * 2**20
_PLAIN = re.compile(r"(?:s3a:/)?(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._=-]+)+")
"""Paths that Java writes as they are: asked for a million addresses, it takes minutes."""


def write_names(spark: SparkSession, folder: str, files: list[LandedFile]) -> None:
    """Write the log that makes Spark's file source read just these files from a folder; anew for
    each stream."""
    log = open_path(folder) / "_spark_metadata"
    log.mkdir(parents=True, exist_ok=True)
    entries = [json.dumps(_sink_entry(spark, landed)) for landed in files]
    replace_file(log / "0", "\n".join(["v1", *entries]))


def _sink_entry(spark: SparkSession, landed: LandedFile) -> dict:
    """A file as Spark's sink logs it.

    The address is written by Java: the checkpoint knows a file by its very characters, and a
    listing writes them this way.
    """
    plain = _PLAIN.fullmatch(landed.path)
    address = landed.path if plain else java_uri(spark, landed.path)
    return {
        "path": address if is_remote(landed.path) else f"file://{address}",
        "size": landed.size,
        "isDir": False,
        "modificationTime": int(landed.modified * 1000),
        "blockReplication": 1,
        "blockSize": _BLOCK,
        "action": "add",
    }
