"""Where rows go."""

from typing import Literal

from .model import Spec


class DeltaSink(Spec):
    """A Delta table under the root, named after the step unless `table` says otherwise."""

    kind: Literal["delta"] = "delta"
    mode: Literal["append", "insert_new"] = "insert_new"
    """`insert_new` inserts keys the table does not hold; `append` is for steps without dedup."""
    table: str | None = None
    """Folder or URI of the table; relative paths lie under the root's `tables/`."""
    partition_by: list[str] = []
    cluster_by: list[str] = []
    properties: dict[str, str] = {}
    """Delta table properties, set when the table is created."""
