"""The JVM jars: a locked list, kept in the user's cache folder, never resolved at run time."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import PreflightError
from .cache import cache_folder

LOCK = Path(__file__).with_name("jars.lock.json")


@dataclass(frozen=True)
class Jar:
    """One line of the lock. `coordinates`: group:artifact:version; `size` in bytes."""

    set: str
    coordinates: str
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """The file name: artifact-version.jar."""
        _, artifact, version = self.coordinates.split(":")
        return f"{artifact}-{version}.jar"


@cache
def _read_lock() -> dict[str, tuple[Jar, ...]]:
    return {
        name: tuple(Jar(name, j["jar"], j["size"], j["sha256"]) for j in jars)
        for name, jars in json.loads(LOCK.read_text(encoding="utf-8")).items()
    }


def jar_sets() -> tuple[str, ...]:
    """The names of the sets: core, avro, kafka, s3, jdbc; and broker, a Kafka server for tests."""
    return tuple(_read_lock())


def locked_jars(*sets: str) -> list[Jar]:
    """The jars of some sets in the lock's order.

    Raises PreflightError for a set the lock does not have.
    """
    lock = _read_lock()
    for name in sets:
        if name not in lock:
            raise PreflightError(
                "no such set of jars",
                where=LOCK.name,
                value=name,
                do=f"There are: {', '.join(lock)}",
            )
    return [jar for name in dict.fromkeys(sets) for jar in lock[name]]


def jar_paths(*sets: str) -> list[Path]:
    """Paths of the jars of some sets.

    Raises PreflightError naming the command when one is missing or has another size than the lock
    says.
    """
    paths = []
    for jar in locked_jars(*sets):
        path = jars_folder() / jar.name
        if not path.is_file():
            raise PreflightError(
                f"the jar {jar.name} was not fetched yet",
                where=str(path),
                do=f"Run `sluice jars fetch {jar.set}`",
            )
        if path.stat().st_size != jar.size:
            raise refuse_jar(path, jar, f"{path.stat().st_size} bytes", f"{jar.size} bytes")
        paths.append(path)
    return paths


def jars_folder() -> Path:
    """Where fetched jars are kept."""
    return cache_folder() / "jars"


def check_jar(path: Path, jar: Jar) -> None:
    """Read every byte. Raises PreflightError when the file is not what the lock says."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != jar.sha256:
        raise refuse_jar(path, jar, f"SHA-256 {found}", f"SHA-256 {jar.sha256}")


def refuse_jar(path: Path, jar: Jar, found: str, expected: str) -> PreflightError:
    """The error for a file that is not the jar it is named after."""
    return PreflightError(
        f"{path.name} is not the file that {LOCK.name} names: expected {expected}",
        where=str(path),
        value=found,
        do=f"Delete it and run `sluice jars fetch {jar.set}`; if that repeats, ask who serves you "
        "that file",
    )
