"""Which Java will run Spark, found without starting it."""

import os
import re
import shutil
from pathlib import Path

from ..errors import PreflightError


def find_java() -> Path:
    """The `java` that Spark would start: `$JAVA_HOME/bin/java`, else the first on the path.

    Raises PreflightError when there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not found or not Path(found).exists():
        raise PreflightError(
            "Java is not there",
            where="JAVA_HOME" if home else "PATH",
            value=home,
            do="Install Java 17, 21 or 25: `apt-get install openjdk-17-jre-headless` on Debian and "
            "Ubuntu, `brew install openjdk@17` on macOS",
        )
    return Path(found).resolve()


def java_version() -> str:
    """The full version, such as `17.0.15`, read from the `release` file beside the binary.

    The binary's own path where there is no such file.
    """
    java = find_java()
    try:
        match = re.search(
            r'^JAVA_VERSION="([^"]+)"',
            (java.parent.parent / "release").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    except OSError:
        return str(java)
    return match[1] if match else str(java)
