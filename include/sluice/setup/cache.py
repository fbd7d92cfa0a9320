"""The user's cache folder, shared by every checkout, and the folder of pyspark's own jars."""

import os
from pathlib import Path

from ..errors import PreflightError


def cache_folder() -> Path:
    """`$SLUICE_CACHE`, else `~/.cache/sluice`."""
    return Path(os.environ.get("SLUICE_CACHE") or Path.home() / ".cache" / "sluice")


def spark_jars_folder() -> Path:
    """The folder of the jars inside the installed pyspark, found without importing it.

    By the installed package: under `spark-submit` a copy of the Python files is imported, out of an
    archive that holds no jars. Raises PreflightError when pyspark is not installed.
    """
    from importlib import metadata  # an idle check asks for no jars

    try:
        return Path(str(metadata.distribution("pyspark").locate_file("pyspark"))) / "jars"
    except metadata.PackageNotFoundError:
        raise PreflightError(
            "pyspark is not installed", where="Python environment", do="Run `make install`"
        ) from None
