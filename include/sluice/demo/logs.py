"""Seeded log files of Log4j: the same seed gives the same bytes.

A day is a file of each program, in one of two layouts. What a log folder holds is in them: stack
traces over many lines, the end of a file shipped again with the next one, a file that begins in the
middle of a trace, one that comes a day late, banners, a level nobody knows, a line in another
encoding, and a clock that stood at 2099.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from .landing import Landing, pack

FIRST_DAY = datetime(2025, 6, 1, tzinfo=UTC)
DAYS = 3
PROGRAMS = ("namenode", "resourcemanager", "spark-executor-1", "spark-executor-2")
_LOGGERS = {
    "namenode": "org.apache.hadoop.hdfs.server.namenode.FSNamesystem",
    "resourcemanager": "org.apache.hadoop.yarn.server.resourcemanager.RMAppImpl",
    "spark-executor-1": "executor.Executor",
    "spark-executor-2": "storage.BlockManager",
}
_LEVELS = ("INFO",) * 20 + ("DEBUG",) * 3 + ("WARN",) * 4 + ("ERROR",)
_FAILURES = ("java.io.IOException", "java.net.SocketTimeoutException", "java.lang.OutOfMemoryError")
_BANNER = "log4j:WARN No appenders could be found for logger (org.apache.hadoop.util.Shell).\n"


def generate_landings(seed: int = 7, records: int = 400) -> Iterator[Landing]:
    """What each day ships. Args: records: of a program on a day."""
    rng = random.Random(seed)  # noqa: S311 (made to be repeatable, not secret)
    late: dict[str, bytes] = {}
    tails: dict[str, list[str]] = {program: [] for program in PROGRAMS}
    for day in range(DAYS):
        start = FIRST_DAY + timedelta(days=day)
        files, late = late, {}
        for program in PROGRAMS:
            lines = sorted(_record(rng, program, start) for _ in range(records))
            text = "".join(_disturb(rng, tails[program] + lines, program, start))
            tails[program] = lines[-records // 40 :]  # the shipper was restarted and sends it again
            # one program's first day comes with the second day's files
            held = late if program == PROGRAMS[3] and day == 0 else files
            name = f"logs/{start:%Y-%m-%d}/{program}.log{'.1.gz' if program == PROGRAMS[1] else ''}"
            held[name] = pack(name, text)
        files[f"logs/{start:%Y-%m-%d}/gateway.log"] = _in_latin(rng, start)
        yield Landing(f"{start:%Y-%m-%d}", files)


def _head(program: str, at: datetime, level: str, thread: str) -> str:
    """The beginning of a record in its program's layout."""
    if program.startswith("spark"):
        return f"{at:%y/%m/%d %H:%M:%S} {level} {_LOGGERS[program]}: "
    millis = at.microsecond // 1000
    return f"{at:%Y-%m-%d %H:%M:%S},{millis:03} {level} [{thread}] {_LOGGERS[program]}: "


def _record(rng: random.Random, program: str, start: datetime, level: str = "") -> str:
    """One record, of one line or with a stack trace below it."""
    at = start + timedelta(milliseconds=rng.randrange(86_400_000))
    level = level or rng.choice(_LEVELS)
    thread = rng.choice(("main", f"IPC Server handler {rng.randrange(32)} on 8020", "pool-1"))
    head = _head(program, at, level, thread)
    if level != "ERROR":
        return f"{head}Block blk_{rng.randrange(10**9)} took {rng.randrange(500)} ms: done\n"
    return f"{head}Could not write blk_{rng.randrange(10**9)}\n{_trace(rng)}"


def _trace(rng: random.Random) -> str:
    """A stack trace with its cause."""
    frames = "".join(
        f"\tat org.apache.hadoop.hdfs.DataStreamer.run(DataStreamer.java:{rng.randrange(900)})\n"
        for _ in range(rng.randrange(2, 8))
    )
    return (
        f"{rng.choice(_FAILURES)}: no answer within {rng.randrange(60)} s\n{frames}"
        f"Caused by: {rng.choice(_FAILURES)}\n\t... {rng.randrange(9)} more\n"
    )


def _disturb(rng: random.Random, lines: list[str], program: str, start: datetime) -> list[str]:
    """A file's records and what should not be among them."""
    if program == PROGRAMS[0]:  # rotated in the middle of a trace
        return [_trace(rng), *lines, _record(rng, program, start, "FATAL")]
    if program == PROGRAMS[1]:
        empty = f"{_head(program, start, 'INFO', 'main')}\n"
        return [_BANNER, *lines, _record(rng, program, start, "NOTICE"), empty]
    if program == PROGRAMS[2] and start.day == FIRST_DAY.day + 1:
        return [*lines, _record(rng, program, start.replace(year=2099))]
    return lines


def _in_latin(rng: random.Random, start: datetime) -> bytes:
    """Records in UTF-8, and among them one in another encoding."""
    lines = [_record(rng, "namenode", start) for _ in range(5)]
    lines.insert(3, f"{_head('namenode', start, 'INFO', 'main')}user Jürgen logged in\n")
    return "".join(lines).encode("latin-1")
