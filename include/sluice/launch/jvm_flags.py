"""Flags of the JVMs of a run, for a short run and for a long one."""

import os
import re
from pathlib import Path

from ..setup.cache import spark_jars_folder
from ..setup.class_archive import class_archive_path

_C1 = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
_LATER = 15
"""By how much later than usual C2 compiles: a run of a minute otherwise compiles for up to a fifth
of its CPU what it then hardly uses (measured, 3,000,000 JSON records: 5 times as late 105-106
CPU-seconds, 15 times 94-98, 40 times as 15; of 1,000,000: 56 and 54)."""
_LATE_C2 = [
    f"-XX:Tier4{name}Threshold={_LATER * usual}"
    for name, usual in (
        ("Invocation", 5_000),
        ("MinInvocation", 600),
        ("Compile", 15_000),
        ("BackEdge", 40_000),
    )
]
_ROOM = 400
"""MB for rows on their way: the heap otherwise grows so late that short-lived ones are collected
seven hundred times (measured: 95 against 99 CPU-seconds). Never more than a quarter of the heap: of
512 MB it left so little for the others that Java did nothing but collect."""
_CLASSES = 128
"""MB of classes up to which Java does not collect because of them. By default it stops for a whole
collection at 21 MB, which each run comes to: a tenth of a second."""
HEAP = "3g"
"""Of the driver. Spark's own 1 GB does not hold a row of 50 MB in all its forms at once; a JVM
takes what it needs, not what it may."""
_MEGABYTES = {"k": 1 / 1024, "m": 1, "": 1, "g": 1024, "t": 1024**2}


def java_options(small: bool, heap: str = HEAP) -> str:
    """JVM flags as one text. Args: heap: as Spark's settings write sizes, `3g`.

    Serial collection always (two cores), C1 alone for a small backlog (with room for all it
    compiles: the 48 MB that go with it are full after some batches, and it starts over), C2 late
    for a large one, and the class archive where set-up made one. Methods of more than 8 000 bytes
    are compiled as well: Spark makes such of many columns or rules, and Java would interpret them.
    """
    rest = _C1 if small else [*_LATE_C2, _room(heap)]
    return " ".join(["-XX:+UseSerialGC", *_common(), *rest])


def _room(heap: str) -> str:
    return f"-XX:NewSize={min(_ROOM, quarter_of(heap))}m"


def quarter_of(heap: str) -> int:
    """Megabytes of a quarter of a heap, as Spark's settings write sizes; enough rows on their way
    where its size cannot be read."""
    match = re.fullmatch(r"(\d+)([kmgt]?)b?", heap.strip().lower())
    return int(int(match[1]) * _MEGABYTES[match[2]] / 4) if match else _ROOM


def executor_options(small: bool) -> str:
    """The same for the executors of a cluster, beneath a site's own options: no collector is named,
    because two of them keep a JVM from starting. For a short run Java is told to choose as on a
    small machine, which is serial collection. Where a node does not have the class archive, they
    start without it."""
    short = [*_C1, "-XX:+NeverActAsServerClassMachine"]
    return " ".join([*_common(), *(short if small else _LATE_C2)])


def launcher_options() -> str:
    """JVM flags of Spark's launcher, a JVM that lives until it has found out how the other is
    started: nothing is compiled for speed, and its classes are found at once. Java else opens two
    hundred jars before the one that holds them (measured: 0.07 and not 0.18 CPU-seconds)."""
    home = os.environ.get("SPARK_HOME")
    jars = Path(home) / "jars" if home else spark_jars_folder()
    found = [f"-Xbootclasspath/a:{jar}" for jar in jars.glob("spark-launcher_*.jar")]
    # Spark's script cuts them at white space, whatever is put around it.
    whole = [flag for flag in found if not re.search(r"\s", flag)]
    return " ".join(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *whole])


def has_class_archive() -> bool:
    """Whether the JVM finds the classes of a run in an archive, which saves up to a third of it."""
    return class_archive_path().exists()


def _common() -> list[str]:
    archive = class_archive_path()
    flags = ["-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"]
    flags += ["-XX:-DontCompileHugeMethods", f"-XX:MetaspaceSize={_CLASSES}m"]
    return flags + ([f"-XX:SharedArchiveFile={archive}"] if archive.exists() else [])
