"""Where rows go."""

from typing import Literal

from pydantic import Field, field_validator, model_validator

from .kafka import KafkaSink
from .model import Spec, by_kind
from .records import as_text


class DeltaSink(Spec):
    """A Delta table under the root, named after the step unless `table` or `name` says otherwise; it is what the step remembers its keys by."""

    kind: Literal["delta"] = "delta"
    mode: Literal["append", "insert_new"] = "insert_new"
    """`insert_new` inserts keys the table does not hold; `append` is for steps without dedup."""
    table: str | None = None
    """Folder or URI of the table; relative paths lie under the root's `tables/`."""
    name: str | None = None
    """Name of the table in Spark's catalog; where the catalog knows it, its place there wins."""
    partition_by: list[str] = []
    cluster_by: list[str] = []
    properties: dict[str, str] = {}
    """Delta table properties, set when the table is created."""


class JdbcSink(Spec):
    """A table of a database with transactions; each batch is written once, because its key stands in a ledger that is written in the same transaction."""

    kind: Literal["jdbc"]
    url: str | None = Field(default=None, repr=False)
    """jdbc:postgresql://host:port/database"""
    user: str | None = None
    password: str | None = Field(default=None, repr=False)
    connection: str | None = None
    """An Airflow connection (type Postgres) instead of the three, as `AIRFLOW_CONN_<ID>` in the environment; Airflow's tasks hand it on by themselves."""
    table: str = Field(min_length=1)
    """Name, with its schema where it is not the user's own: `sales.orders`. Created from the step's columns when it is absent."""
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


class FilesSink(Spec):
    """Files of a folder; those of a batch appear together, and a batch that comes again replaces its own."""

    kind: Literal["files"]
    path: str = Field(min_length=1)
    """Folder or URI; relative paths lie under the root."""
    format: Literal["parquet", "orc", "json", "csv", "avro"] = "parquet"
    partition_by: list[str] = []
    options: dict[str, str] = {}
    """Spark's own writer options, passed through as written."""

    @field_validator("options", mode="before")
    @classmethod
    def _stringify(cls, options: dict) -> dict:
        return as_text(options)


class ForeachSink(Spec):
    """A Python class with `open(partition, batch)`, `process(row)` and `close(error)`; called for each partition of a batch."""

    kind: Literal["foreach"]
    writer: str
    """`file.py:Class`, relative to the pipeline's YAML."""


class ForeachBatchSink(Spec):
    """A Python function `(rows, token)`: the rows of a batch, and a text that is the same when the batch comes again."""

    kind: Literal["foreach_batch"]
    function: str
    """`file.py:function`, relative to the pipeline's YAML."""


class ConsoleSink(Spec):
    """The first rows of each batch, printed."""

    kind: Literal["console"]
    rows: int = Field(default=20, ge=1)


class MemorySink(Spec):
    """A temporary view of the Spark session, for trials: it ends with the run."""

    kind: Literal["memory"]
    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")


Sink = by_kind(
    "delta",
    DeltaSink,
    KafkaSink,
    JdbcSink,
    FilesSink,
    ForeachSink,
    ForeachBatchSink,
    ConsoleSink,
    MemorySink,
)
