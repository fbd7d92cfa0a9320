"""The user's cache folder, shared by every checkout, and the folder of pyspark's own jars."""

import os
from importlib import util
from pathlib import Path

from ..errors import PreflightError


def cache_folder() -> Path:
    """`$SLUICE_CACHE`, else `~/.cache/sluice`."""
    return Path(os.environ.get("SLUICE_CACHE") or Path.home() / ".cache" / "sluice")


def spark_jars_folder() -> Path:
    """The folder of the jars inside the installed pyspark, found without importing it.

    Raises PreflightError when pyspark is not installed.
    """
    spec = util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise PreflightError(
            "pyspark is not installed", where="Python environment", do="Run `make install`"
        )
    return Path(spec.origin).parent / "jars"
