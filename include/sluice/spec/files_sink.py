"""Files of a folder as a sink."""

from typing import Literal

from pydantic import Field

from ..storage.paths import Paths, resolve_path
from .model import Options
from .sink_kind import SinkKind, is_absolute


class FilesSink(SinkKind):
    """Files of a folder; those of a batch appear together, and a batch that comes again replaces
    its own. Of a step with `groups` the files of a partition take the place of those it had."""

    kind: Literal["files"]
    path: str = Field(min_length=1)
    """Folder or URI; relative paths lie under the root."""
    format: Literal["parquet", "orc", "json", "csv", "avro"] = "parquet"
    partition_by: list[str] = []
    options: Options = {}
    """Spark's own writer options, passed through as written."""

    @property
    def places(self) -> tuple[str, ...]:
        """The folder."""
        return (self.path,)

    @property
    def jar_sets(self) -> frozenset[str]:
        """Spark's writer of Avro is no part of Spark."""
        return super().jar_sets | ({"avro"} if self.format == "avro" else set())

    @property
    def place(self) -> str:
        """The folder."""
        return self.path

    def writes(self, paths: Paths) -> frozenset[str]:
        """The folder."""
        return frozenset({resolve_path(self.path, paths.root)})

    @property
    def adds_rows(self) -> bool:
        """Files are never changed."""
        return True

    @property
    def mirrored_by(self) -> list[str] | None:
        """The partition."""
        return self.partition_by

    @property
    def layout(self) -> dict[str, list[str]]:
        """Partitions."""
        return {"partition_by": self.partition_by}

    @property
    def stays_below_root(self) -> bool:
        """Unless another place is written."""
        return not is_absolute(self.path)
