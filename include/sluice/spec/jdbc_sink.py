"""A table of a database as a sink."""

from typing import Literal

from pydantic import Field, model_validator

from .sink_kind import SinkKind


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
    mode: Literal["append", "upsert"] = "append"
    keys: list[str] = []
    """Columns whose rows are replaced under `upsert`."""
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
        if (self.mode == "upsert") != bool(self.keys):
            raise ValueError(
                "`mode: upsert` needs `keys`"
                if self.mode == "upsert"
                else "`keys` go with `mode: upsert`"
            )
        return self

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
    def upsert_keys(self) -> list[str]:
        """As written; `append` has none."""
        return self.keys
