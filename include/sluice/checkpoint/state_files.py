"""What a query's state is on disk, read without Spark.

Layout (Spark 4.2), below `state/<operator>/<partition>[/<store>]`: a version is its newest snapshot
and the changes since. RocksDB: `N_<id>.zip`, which names files in `SSTs`, and `N_<id>.changelog`;
HDFS-backed: `N.snapshot` and `N.delta`. Older versions lie beside them, to go back to.
"""

import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from ..storage import open_path

_SNAPSHOTS, _CHANGES = (".zip", ".snapshot"), (".changelog", ".delta")


def live_bytes(spark_folder: str, operator: int) -> int | None:
    """Bytes that a run loads of what an operator keeps; None where that cannot be told."""
    home = open_path(spark_folder) / "state" / str(operator)
    try:
        return sum(_live_bytes(store) for store in _stores(home))
    except (OSError, ValueError, KeyError, BadZipFile):
        return None


def state_operators(spark_folder: str) -> dict[int, str]:
    """Spark's names of a query's operators with state, by their numbers; none of a query without,
    or before its first batch was finished."""
    home, found = open_path(spark_folder) / "state", {}
    for folder in _list(home):
        note = folder / "_metadata" / "metadata"
        if folder.name.isdigit() and note.exists():
            told = json.loads(note.read_text(encoding="utf-8").partition("\n")[2])
            found[int(folder.name)] = str(told["operatorInfo"]["operatorName"])
    return found


def _list(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _stores(operator: Path) -> Iterator[list[Path]]:
    """The files of each store of each partition: a join has several stores."""
    for partition in _list(operator):
        if partition.name.isdigit():
            files = _list(partition)
            yield files
            for folder in files:
                if folder.name not in ("SSTs", "logs", "_metadata") and not folder.suffix:
                    yield _list(folder)


def _live_bytes(files: list[Path]) -> int:
    versions = {(_version(file), file.suffix): file for file in files if _version(file) >= 0}
    newest = max((n for n, suffix in versions if suffix in _SNAPSHOTS), default=-1)
    size = 0
    for (number, suffix), file in versions.items():
        if (suffix in _CHANGES and number > newest) or (suffix in _SNAPSHOTS and number == newest):
            size += file.stat().st_size
            size += _sst_bytes(file) if suffix == ".zip" else 0
    return size


def _version(file: Path) -> int:
    """The version that a snapshot or a change belongs to; -1 for another file."""
    number = file.name.partition(".")[0].partition("_")[0]
    return int(number) if number.isdigit() and file.suffix in (*_SNAPSHOTS, *_CHANGES) else -1


def _sst_bytes(snapshot: Path) -> int:
    """Bytes of the files that a snapshot names."""
    with ZipFile(BytesIO(snapshot.read_bytes())) as archive:
        told = archive.read("metadata").decode().partition("\n")[2]
    return sum(file["sizeBytes"] for file in json.loads(told)["sstFiles"])
