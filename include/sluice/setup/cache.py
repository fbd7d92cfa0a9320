"""The user's cache folder: jars and class archives, shared by every checkout."""

import hashlib
import json
import os
from importlib import metadata, util
from pathlib import Path

from ..errors import PreflightError
from .java import java_version


def cache_folder() -> Path:
    """`$SLUICE_CACHE`, else `~/.cache/sluice`."""
    return Path(os.environ.get("SLUICE_CACHE") or Path.home() / ".cache" / "sluice")


def spark_jars_folder() -> Path:
    """The folder of the jars inside the installed pyspark, found without importing it. Raises PreflightError when pyspark is not installed."""
    spec = util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PreflightError(
            "pyspark is not installed", where="Python environment", do="Run `make install`"
        )
    return Path(spec.origin).parent / "jars"


def class_archive_path(*sets: str) -> Path:
    """Where the JVM's class archive for these jar sets lies, whether or not it was built yet (`core` when none is named).

    The JVM ignores an archive made by another Java or for another class path, so both are part of its name.
    """
    from .jars import locked_jars

    key = [
        java_version(),
        metadata.version("pyspark"),
        str(spark_jars_folder()),
        str(cache_folder()),
        [jar.sha256 for jar in locked_jars(*(sets or ("core",)))],
    ]
    return (
        cache_folder()
        / "archives"
        / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]}.jsa"
    )
