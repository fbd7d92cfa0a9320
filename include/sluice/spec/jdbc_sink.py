"""A table of a database as a sink."""

from typing import Literal

from pydantic import Field, model_validator

from .dedup import split_order
from .sink_kind import OutputMode, SinkKind


class JdbcSink(SinkKind):
    """A table of a database with transactions; each batch is written once, because its key stands
    in a ledger that is written in the same transaction."""

    kind: Literal["jdbc"]
    url: str | None = Field(default=None, repr=False)
    """jdbc:postgresql://host:port/database"""
    user: str | None = None
    password: str | None = Field(default=None, repr=False)
    connection: str | None = None
    """An Airflow connection (type Postgres) instead of the three, as `AIRFLOW_CONN_<ID>` in the
    environment; Airflow's tasks hand it on by themselves."""
    table: str = Field(min_length=1)
    """Name, with its schema where it is not the user's own: `sales.orders`. Created from the step's
    columns when it is absent."""
    mode: Literal["append", "upsert", "update"] = "append"
    """`upsert`: a row takes the place of the one with its keys that ranks behind it; of a step with
    `groups` rows that are gone from the target are deleted. `update`: of a transform that
    aggregates, each batch brings the groups that changed, and they take the place of what they
    were."""
    keys: list[str] = []
    """Columns whose rows are replaced under `upsert` and `update`."""
    order_by: list[str] = []
    """Which row of a key stays under `upsert`: the first by these columns (`at desc`). By default
    the step's `dedup.order_by`, else the newest by `event_time`."""
    columns: list[str] = []
    """Columns that are written; all by default."""
    types: dict[str, str] = {}
    """Column -> type in the database, where the usual one does not fit: {note: jsonb}."""
    partitions: int = Field(default=2, ge=1)
    """Connections that write at the same time."""
    ledger: str = "sluice_batches"
    """Table of the batches that were written."""

    @model_validator(mode="after")
    def _check_sink(self) -> "JdbcSink":
        if (self.url is None) == (self.connection is None):
            raise ValueError("write either `url` or `connection`")
        if (self.mode == "append") == bool(self.keys):
            raise ValueError(
                "`keys` go with `mode: upsert` or `mode: update`"
                if self.keys
                else f"`mode: {self.mode}` needs `keys`"
            )
        if self.order_by and self.mode != "upsert":
            kept = "every row" if self.mode == "append" else "the newest batch's"
            raise ValueError(f"`order_by` goes with `mode: upsert`: {self.mode} keeps {kept}")
        return self

    def ranked(self, order: list[str]) -> "JdbcSink":
        """With that order, where rows take the place of others."""
        if self.mode != "upsert" or self.order_by:
            return self
        return self.model_copy(update={"order_by": order})

    @property
    def order(self) -> list[tuple[str, bool]]:
        """`order_by` as columns, and whether the greatest comes first."""
        return split_order(self.order_by)

    @property
    def jar_sets(self) -> frozenset[str]:
        """The database's driver."""
        return super().jar_sets | {"jdbc"}

    @property
    def connections(self) -> tuple[str, ...]:
        """The one that says where the database is."""
        return (self.connection,) if self.connection else ()

    @property
    def place(self) -> str:
        """The table."""
        return self.table

    @property
    def adds_rows(self) -> bool:
        """Unless rows are replaced by their keys."""
        return self.mode == "append"

    @property
    def output_mode(self) -> OutputMode | None:
        """`update`, where groups are to come whenever they change."""
        return "update" if self.mode == "update" else None

    @property
    def written(self) -> list[str]:
        """As listed."""
        return self.columns

    @property
    def upsert_keys(self) -> list[str]:
        """As written; `append` has none."""
        return self.keys

    @property
    def mirrored_by(self) -> list[str] | None:
        """The keys of an upsert."""
        return self.keys if self.mode == "upsert" else None
