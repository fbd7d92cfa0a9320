"""How the files of a batch appear in a folder: all that were written, once, whatever was killed
when.

Beside the folder lies one of ours for each checkpoint (`_batches/<folder>/<hash>`), with
- `staged-<random>`: what Spark writes for a batch, before anybody sees it,
- `<batch>.plan`: which staged file gets which name, and which files they take the place of; from
  here on the batch is decided, and will appear,
- `<batch>.done`: the same file under another name, when all are in their places. The newest stays,
  so one small file a checkpoint is what remains.

A kill before the plan leaves staged files, which the next delivery removes; one after it leaves a
plan, which the next delivery carries out.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from uuid import uuid4

from ...errors import SpecError
from ...storage import batches_folder, is_remote
from .store import FileStore

_PLAN, _DONE = "plan", "done"
_PUBLISHED = re.compile(r"part-[0-9a-f]{12}-\d{8,}-")


def ledger_folder(folder: str, key: str) -> str:
    """Where the plans of one key lie: beside the folder, because patterns like `**/*.parquet` enter
    every folder below it (DuckDB's also hidden ones).

    Raises SpecError for a bucket without a folder: Spark itself reads hidden folders of a bucket's
    root.
    """
    if is_remote(folder) and folder.count("/") < 3:
        raise SpecError(
            "files cannot be published in the root of a store",
            where=folder,
            do="Name a folder below it",
        )
    return batches_folder(folder, sha256(key.encode()).hexdigest()[:12])


@dataclass(frozen=True)
class Publication:
    """A batch whose files have their names. `moves`: name in the folder -> staged path, both
    relative. `removes`: names in the folder of files that go before the others come, none of which
    has the name of one of them."""

    key: str
    batch: int
    rows: int
    moves: dict[str, str]
    removes: list[str] = field(default_factory=list)


class Publisher:
    """Publishes the batches of one key into a folder, one after the other. Nothing else in the
    folder is touched."""

    def __init__(self, store: FileStore, folder: str, key: str) -> None:
        self._store, self._folder, self._key, self._ledger = (
            store,
            folder,
            key,
            ledger_folder(folder, key),
        )

    def recover(self) -> Publication | None:
        """Carry out the plan an interrupted delivery left, remove what else it left, and return the
        newest batch that is published."""
        names = self._store.list_names(self._ledger)
        for name in names:
            if name.endswith(f".{_PLAN}"):
                self._finish(self._read(name))
        numbers = [number for name in names if (number := _number(name)) is not None]
        newest = max(numbers, default=None)
        self._sweep(names, newest)
        return None if newest is None else self._read(f"{newest}.{_DONE}")

    def has_files(self, batch: int) -> bool:
        """Whether any file of a batch is in the folder, as far as it kept its name."""
        if not self._store.exists(self._folder):
            return False
        stem = self._stem(batch)
        names = (path.rpartition("/")[2] for path in self._store.list_files(self._folder))
        return any(name.startswith(stem) for name in names)

    def stage(self) -> str:
        """Path of a folder that does not exist yet, for Spark to write the files of a batch
        into."""
        return f"{self._ledger}/staged-{uuid4().hex[:12]}"

    def publish(
        self, batch: int, rows: int, staged: str, replaced: Iterable[str] | None = None
    ) -> None:
        """Give the staged files their names and let them appear: one rename a file, one after the
        other.

        Args: replaced: partitions whose files go first, and those of the staged files with them;
        None where none do. Only files that were published go, whichever checkpoint's they are.
        """
        moves, stem, own = {}, self._stem(batch), staged.rpartition("/")[2]
        if replaced is not None:  # a name of its own: what goes may be of the same batch
            stem = f"{stem}-{own.rpartition('-')[2]}"
        partitions = set(replaced or ())
        files = self._store.list_files(staged) if self._store.exists(staged) else []
        for number, path in enumerate(files):
            partition, slash, name = path.rpartition("/")
            partitions.add(partition)
            moves[f"{partition}{slash}{stem}-{number:05d}.{name.partition('.')[2]}"] = (
                f"{own}/{path}"
            )
        removes = self._list_published(partitions) if replaced is not None else []
        publication = Publication(self._key, batch, rows, moves, removes)
        self._store.write(f"{self._ledger}/{batch}.{_PLAN}", json.dumps(asdict(publication)))
        self._finish(publication)
        # The note of a newer batch stays: one that came out of turn must not make it come again.
        self._sweep(self._store.list_names(self._ledger), batch)

    def list_partitions(self) -> set[str]:
        """The partitions in which files of a batch lie."""
        if not self._store.exists(self._folder):
            return set()
        files = self._store.list_files(self._folder)
        return {path.rpartition("/")[0] for path in files if _is_published(path)}

    def _list_published(self, partitions: Iterable[str]) -> list[str]:
        found = []
        for partition in sorted(partitions):
            at = f"{partition}/" if partition else ""
            names = self._store.list_names(f"{self._folder}/{partition}".rstrip("/"))
            found += [f"{at}{name}" for name in names if _is_published(name)]
        return found

    def _stem(self, batch: int) -> str:
        return f"part-{self._ledger.rpartition('/')[2]}-{batch:08d}"

    def _read(self, name: str) -> Publication:
        return Publication(**json.loads(self._store.read(f"{self._ledger}/{name}")))

    def _finish(self, publication: Publication) -> None:
        for name in publication.removes:
            self._store.remove(f"{self._folder}/{name}")
        for name, staged in publication.moves.items():
            self._store.move(f"{self._ledger}/{staged}", f"{self._folder}/{name}")
        self._store.move(
            f"{self._ledger}/{publication.batch}.{_PLAN}",
            f"{self._ledger}/{publication.batch}.{_DONE}",
        )

    def _sweep(self, names: list[str], batch: int | None) -> None:
        """Remove what was listed, except the notes of a batch and of those after it.

        Only after its plan was carried out: staged files are in their places then.
        """
        for name in names:
            number = _number(name)
            if number is None or batch is None or number < batch:
                self._store.remove(f"{self._ledger}/{name}")


def _is_published(path: str) -> bool:
    """Whether a file has the name of one that was published."""
    return _PUBLISHED.match(path.rpartition("/")[2]) is not None


def _number(name: str) -> int | None:
    """The batch of a note; None for what an interrupted delivery left."""
    stem, _, kind = name.partition(".")
    return int(stem) if kind in (_PLAN, _DONE) else None
