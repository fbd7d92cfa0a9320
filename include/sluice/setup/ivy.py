"""Download jars with the Ivy that ships inside pyspark, so no other tool has to be installed."""

import os
import subprocess
from pathlib import Path

from ..errors import PreflightError
from .cache import spark_jars_folder
from .java import find_java

# `ibiblio` without a root is Maven Central; POMs are not read, because the lock lists every jar
# that is wanted.
_SETTINGS = """<ivysettings>
  <settings defaultResolver="main"/>
  <caches defaultCacheDir="{cache}"/>
  <resolvers><ibiblio name="main" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
_DEPENDENCY = (
    '    <dependency org="{}" name="{}" rev="{}" transitive="false"'
    ' conf="*-&gt;master(default)"/>\n'
)
_MODULE = """<ivy-module version="2.0">
  <info organisation="sluice" module="jars"/>
  <configurations defaultconf="default"/>
  <dependencies>
{}  </dependencies>
</ivy-module>
"""
_TIMEOUT = 1800  # seconds; the S3 set holds a jar of 686 MB


class DownloadFailed(PreflightError):
    """Raised when Ivy could not get a jar, which may pass."""


def download(coordinates: list[str], folder: Path) -> None:
    """Put the jars `group:artifact:version` into a folder as artifact-version.jar.

    `$SLUICE_IVY_SETTINGS` names an Ivy settings file of the user's own, for mirrors. Raises
    DownloadFailed with Ivy's own reason. A second try goes on with what the first left behind.
    """
    module, settings = folder / "ivy.xml", folder / "ivysettings.xml"
    module.write_text(
        _MODULE.format("".join(_DEPENDENCY.format(*c.split(":")) for c in coordinates)),
        encoding="utf-8",
    )
    settings.write_text(_SETTINGS.format(cache=folder / "cache"), encoding="utf-8")
    chosen = os.environ.get("SLUICE_IVY_SETTINGS") or str(settings)
    command = [
        str(find_java()),
        "-cp",
        f"{spark_jars_folder()}/*",
        "org.apache.ivy.Main",
        "-settings",
        chosen,
        "-ivy",
        str(module),
        "-retrieve",
        f"{folder}/[artifact]-[revision].[ext]",
    ]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise PreflightError(
            f"the download took longer than {_TIMEOUT // 60} minutes",
            where=", ".join(coordinates),
            do="Run the same command again",
        ) from None
    if done.returncode:
        raise DownloadFailed(_reason(done.stdout + done.stderr), where=", ".join(coordinates))


def _reason(output: str) -> str:
    """The lines of Ivy's output that say what went wrong."""
    words = ("not found", "exception", "error", "refused", "unknown host", "timed out", "failed")
    lines = [
        line.strip(" :\t")
        for line in output.splitlines()
        if any(word in line.lower() for word in words)
    ]
    return "; ".join(dict.fromkeys(lines))[:600] or output.strip()[-300:]
