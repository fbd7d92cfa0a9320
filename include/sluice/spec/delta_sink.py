"""A Delta table as a sink: the target of a step."""

from typing import ClassVar, Literal

from pydantic import model_validator

from .sink_kind import OutputMode, SinkKind, is_absolute

CHANGE_FEED = "delta.enableChangeDataFeed"
"""The property by which a table keeps a feed of its changes."""


class DeltaSink(SinkKind):
    """A Delta table under the root, named after the step unless `table` or `name` says otherwise;
    it is what the step remembers its keys by."""

    kind: Literal["delta"] = "delta"
    mode: Literal["append", "insert_new", "update", "complete"] | None = None
    """By default what fits the step: `insert_new`, which inserts keys the table does not hold, with
    `dedup`, and `append` without. Of a transform that aggregates: `append` writes a group once,
    when its watermark has passed; `update` replaces in each batch the groups that changed, by
    `keys`; `complete` replaces the whole table by all groups in each batch."""
    keys: list[str] = []
    """The columns by which `update` knows a group: what the transform groups by."""
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

    @model_validator(mode="after")
    def _check_keys(self) -> "DeltaSink":
        if (self.mode == "update") != bool(self.keys):
            raise ValueError(
                "`keys` go with `mode: update`, which replaces groups by them"
                if self.keys
                else "`mode: update` needs `keys`: the columns by which a group is known"
            )
        return self

    @property
    def adds_rows(self) -> bool:
        """Unless groups or the whole table are replaced: a changed row would stand beside the one
        it was."""
        return self.output_mode is None

    @property
    def output_mode(self) -> OutputMode | None:
        """As `mode` says, of those that replace rows."""
        return self.mode if self.mode in ("update", "complete") else None

    @property
    def takes_whole(self) -> bool:
        """Where the whole table is replaced."""
        return self.mode == "complete"

    @property
    def upsert_keys(self) -> list[str]:
        """As written."""
        return self.keys

    @property
    def layout(self) -> dict[str, list[str]]:
        """Partitions and clusters, and what groups are known by."""
        parts = {"partition_by": self.partition_by, "cluster_by": self.cluster_by}
        return {**parts, **({"keys": self.keys} if self.keys else {})}

    @property
    def stays_below_root(self) -> bool:
        """Unless another place is written."""
        return self.name is None and not is_absolute(self.table or "")

    @property
    def maps_columns(self) -> bool:
        """True where the table's properties let column names hold any character."""
        return self.properties.get("delta.columnMapping.mode", "none") != "none"
