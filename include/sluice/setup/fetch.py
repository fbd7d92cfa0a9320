"""Fetches jars that are missing: tried again where the network fails, checked byte by byte."""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import PreflightError
from .ivy import DownloadFailed, download
from .jars import Jar, check_jar, jars_folder, locked_jars

PAUSES = (2.0, 5.0, 15.0, 30.0)
"""Seconds before each further try: networks and mirrors that fail mostly do so for a moment."""
OnJar = Callable[[Jar, str], None]


def fetch_jars(*sets: str, on_jar: OnJar = lambda jar, what: None) -> list[Path]:
    """Fetch what is missing of some sets, check every byte, and return the paths.

    Needs no network when all is there. on_jar(jar, "kept" | "fetched" | "again") is called for
    each. Raises PreflightError that names the jar which cannot be had, or is not what the lock
    says.
    """
    folder = jars_folder()
    folder.mkdir(parents=True, exist_ok=True)
    jars = locked_jars(*sets)
    missing = [jar for jar in jars if not (folder / jar.name).is_file()]
    for jar in jars:
        if jar not in missing:
            check_jar(folder / jar.name, jar)
            on_jar(jar, "kept")
    if missing:
        # On the same file system, so that the last step is a rename and nobody sees half a jar.
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as temporary:
            _fetch(missing, Path(temporary), on_jar)
    return [folder / jar.name for jar in jars]


def _fetch(missing: list[Jar], folder: Path, on_jar: OnJar) -> None:
    """Fetch jars in one go; those that did not come again and again, each by itself."""
    reason = _take([missing], folder, on_jar)
    for pause in PAUSES:
        missing = [jar for jar in missing if not (jars_folder() / jar.name).is_file()]
        if not missing:
            return
        for jar in missing:
            on_jar(jar, "again")
        time.sleep(pause)
        reason = _take([[jar] for jar in missing], folder, on_jar)
    if reason:
        raise PreflightError(
            f"{reason[0].name} could not be downloaded in {len(PAUSES) + 1} tries: {reason[1]}",
            where=reason[0].coordinates,
            do="Check the network, or name a mirror in an Ivy settings file (export "
            f"SLUICE_IVY_SETTINGS=<file>), then run `sluice jars fetch {reason[0].set}`",
        )


def _take(groups: list[list[Jar]], folder: Path, on_jar: OnJar) -> tuple[Jar, str] | None:
    """Download groups of jars and keep what came; a jar that did not come, and why."""
    left: tuple[Jar, str] | None = None
    for jars in groups:
        reason = "Ivy left it out, and gave no reason"
        try:
            download([jar.coordinates for jar in jars], folder)
        except DownloadFailed as error:
            reason = error.what
        for jar in jars:
            path = folder / jar.name
            if not path.is_file():
                left = left or (jar, reason)
                continue
            check_jar(path, jar)
            os.replace(path, jars_folder() / jar.name)
            on_jar(jar, "fetched")
    return left
