"""A Delta table as a sink: the target of a step."""

from typing import ClassVar, Literal

from .sink_kind import SinkKind, is_absolute


class DeltaSink(SinkKind):
    """A Delta table under the root, named after the step unless `table` or `name` says otherwise;
    it is what the step remembers its keys by."""

    kind: Literal["delta"] = "delta"
    mode: Literal["append", "insert_new"] | None = None
    """By default what fits the step: `insert_new`, which inserts keys the table does not hold, with
    `dedup`, and `append` without."""
    table: str | None = None
    """Folder or URI of the table; relative paths lie under the root's `tables/`."""
    name: str | None = None
    """Name of the table in Spark's catalog; where the catalog knows it, its place there wins."""
    partition_by: list[str] = []
    cluster_by: list[str] = []
    properties: dict[str, str] = {}
    """Delta table properties, set when the table is created."""
    is_target: ClassVar[bool] = True

    @property
    def places(self) -> tuple[str, ...]:
        """The table, where the file says where it lies."""
        return (self.table or "",)

    @property
    def place(self) -> str:
        """Path or name, where the file says one."""
        return self.table or self.name or ""

    @property
    def adds_rows(self) -> bool:
        """A changed row would stand beside the one it was."""
        return True

    @property
    def layout(self) -> dict[str, list[str]]:
        """Partitions and clusters."""
        return {"partition_by": self.partition_by, "cluster_by": self.cluster_by}

    @property
    def stays_below_root(self) -> bool:
        """Unless another place is written."""
        return self.name is None and not is_absolute(self.table or "")

    @property
    def keeps_changes(self) -> bool:
        """True where the table's properties let it keep a feed of its changes."""
        return self.properties.get("delta.enableChangeDataFeed", "false").lower() == "true"

    @property
    def maps_columns(self) -> bool:
        """True where the table's properties let column names hold any character."""
        return self.properties.get("delta.columnMapping.mode", "none") != "none"
