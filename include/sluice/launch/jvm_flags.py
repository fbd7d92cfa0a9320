"""Flags of the driver's JVM, for a short run and for a long one."""

from ..setup.class_archive import class_archive_path

_C1 = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]
_LATE_C2 = [
    f"-XX:Tier4{name}Threshold={5 * usual}"
    for name, usual in (
        ("Invocation", 5_000),
        ("MinInvocation", 600),
        ("Compile", 15_000),
        ("BackEdge", 40_000),
    )
]
"""Five times Java's own: a run of a minute otherwise compiles for up to a fifth of its CPU what it
then hardly uses (measured: 64-67 against 73-86 CPU-seconds, 500 000 records)."""


def java_options(small: bool) -> str:
    """JVM flags as one text.

    Serial collection always (two cores), C1 alone for a small backlog (with room for all it
    compiles: the 48 MB that go with it are full after some batches, and it starts over), C2 late
    for a large one, and the class archive where set-up made one. Methods of more than 8 000 bytes
    are compiled as well: Spark makes such of many columns or rules, and Java would interpret them.
    """
    archive = class_archive_path()
    flags = ["-XX:+UseSerialGC", "-Xshare:auto", "-Xlog:disable", "-Xlog:all=error:stderr"]
    flags.append("-XX:-DontCompileHugeMethods")
    flags += _C1 if small else _LATE_C2
    flags += [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []
    return " ".join(flags)
