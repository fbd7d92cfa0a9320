"""One batch on its way to one sink."""

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Delivery:
    """One batch on its way to one sink. `key`: pipeline, step and checkpoint generation, the same
    when the batch comes again; with `batch` it names the batch for ever."""

    key: str
    batch: int
    columns: list[str]
    """The user's columns; the rows have the system columns beside them."""
    folder: Path
    """Of the pipeline's YAML."""
    root: str
    """Folder or URI below which relative paths lie."""
    hidden: frozenset[str] = frozenset()
    """Columns whose values are never shown."""
    again: bool = False
    """A person asked for it: what the sink has counts, not what it has noted."""
    keys: tuple[str, ...] = ()
    """The columns by which a person knows a row."""
    whole: bool = False
    """The batch is the whole result, and takes the place of the one before."""
    mirror: bool = False
    """The sink becomes what the target is: the rows are all that the target holds now in the places
    that the batch changed."""
    gone: DataFrame | None = None
    """Of a mirror: those of the places where the target holds nothing any more, one row each, in
    the columns that the sink is `mirrored_by`."""

    def to(self, title: str) -> "Delivery":
        """The same batch under the key of one sink."""
        return replace(self, key=f"{self.key}/{title}")

    @property
    def number(self) -> int:
        """Key and batch as a number below 2**63, which no other batch has."""
        return int.from_bytes(sha256(self.token.encode()).digest()[:8]) >> 1

    @property
    def token(self) -> str:
        """Key and batch as one text."""
        return f"{self.key}/{self.batch}"
