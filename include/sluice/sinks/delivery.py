"""One batch on its way to one sink."""

from dataclasses import dataclass
from pathlib import Path


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

    @property
    def token(self) -> str:
        """Key and batch as one text."""
        return f"{self.key}/{self.batch}"
