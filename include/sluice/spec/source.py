"""Where rows come from."""

import re
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field, field_validator, model_validator

from ..storage.buckets import in_bucket
from .kafka import KafkaSource
from .model import Spec, by_kind
from .notifications import Notifications
from .quantities import Size
from .records import Records, as_text

SYSTEM_COLUMNS = ("_run_id", "_batch_id", "_batch_key", "_source", "_ingested_at")
"""Columns of the target beside the user's. `_batch_key` (pipeline, step, checkpoint generation,
batch) is the one by which a batch's rows are found again."""


class FileSource(Records):
    """Files that arrive in a folder; each is read once, in order of modification time."""

    kind: Literal["files"] = "files"
    path: str = Field(min_length=1)
    """Folder, read recursively; a path may hold globs: `landing/*/orders`."""
    pattern: str = "*"
    """Glob that file names must match. Names that start with `.` or `_`, or end in `.tmp` or `._COPYING_`, are never read."""
    format: Literal["json", "csv", "text", "parquet", "orc", "avro"]
    multi_line: bool = False
    """JSON: one array or object spread over lines per file. CSV: quoted values may hold line breaks."""
    header: bool = True
    """CSV only: the first line of each file names the columns."""
    file_date: str | None = None
    """strptime pattern of the date in a file's relative path, e.g. `%Y-%m-%d`; a backfill picks files by it."""
    ordered_by: Literal["name", "folder"] | None = None
    """What sorts in the order in which files arrive: their names (a time or a counter leads them) or their folders (`dt=2026-01-31/`, whatever the names).
    On S3 the probe then lists only the end of the folder, not a history of a million objects."""
    notifications: Notifications | None = None
    """S3 only: a queue names the new objects to scheduled runs. Without it each run lists the folder."""
    max_files_per_batch: int | None = Field(default=None, ge=1)
    max_bytes_per_batch: Size | None = None

    @model_validator(mode="after")
    def _check_notifications(self) -> "FileSource":
        if self.notifications and not in_bucket(self.path):
            raise ValueError(
                f"`notifications` are S3's, and {self.path!r} lies elsewhere; write `path: s3a://bucket/folder`, or leave out `notifications`"
            )
        if self.notifications and self.ordered_by:
            raise ValueError(
                "`ordered_by` shortens listings, and with `notifications` a listing is an audit, which is always whole; leave out one of the two"
            )
        return self

    @model_validator(mode="after")
    def _check_order(self) -> "FileSource":
        if self.ordered_by and re.search(r"[{}\[\]*?\\]", self.path):
            raise ValueError(
                "`ordered_by` needs a path without globs, because what they match sorts within each folder only; name the folder above them"
            )
        return self

    @model_validator(mode="after")
    def _check_text(self) -> "FileSource":
        if self.format == "text" and list(self.columns.items()) != [("value", "string")]:
            raise ValueError("format text reads one column; write `schema: {value: string}`")
        return self


class TableStart(Spec):
    """The first commit of a table that is read; what the table held before is not."""

    version: int | None = Field(default=None, ge=0)
    timestamp: datetime | None = None
    """The first commit at or after this moment, UTC when no zone is given."""

    @field_validator("timestamp")
    @classmethod
    def _in_utc(cls, value: datetime | None) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value

    @model_validator(mode="after")
    def _check_one(self) -> "TableStart":
        if (self.version is None) == (self.timestamp is None):
            raise ValueError("write either `version` or `timestamp`")
        return self


class TableSource(Spec):
    """A Delta table: each of its commits is read once."""

    kind: Literal["table"]
    step: str | None = None
    """The target of an earlier step of this pipeline."""
    path: str | None = None
    """Folder or URI of a table; relative paths lie under the root's `tables/`."""
    name: str | None = None
    """A table's name in Spark's catalog."""
    start: Literal["earliest", "latest"] | TableStart = "earliest"
    """`earliest`: what the table holds at the first run, then every commit. `latest`: only commits from now on."""
    change_feed: bool = False
    """Read the change data feed: the columns `_change_type`, `_commit_version` and `_commit_timestamp` come as change_type, commit_version and commit_timestamp."""
    skip_change_commits: bool = False
    """Pass over commits that update or delete rows instead of stopping at the first."""
    event_time_order: bool = False
    """Read the table's first state in one batch, so that nothing of it is behind a watermark. Delta's own `withEventTimeOrder` is taken and ignored by Delta 4.4.0."""
    schema_tracking: bool = False
    """Keep the table's schema beside the checkpoint, so that columns may be renamed and dropped in it."""
    max_files_per_batch: int | None = Field(default=None, ge=1)
    max_bytes_per_batch: Size | None = None
    options: dict[str, str] = {}
    """Delta's own reader options, passed through as written."""

    @field_validator("options", mode="before")
    @classmethod
    def _stringify(cls, options: dict) -> dict:
        return as_text(options)

    @model_validator(mode="after")
    def _check_place(self) -> "TableSource":
        if sum(place is not None for place in (self.step, self.path, self.name)) != 1:
            raise ValueError("say which table: one of `step`, `path` and `name`")
        if self.change_feed and self.skip_change_commits:
            raise ValueError(
                "`change_feed` reads every change, `skip_change_commits` passes over them; write one of the two"
            )
        return self


class RateSource(Spec):
    """Rows made by Spark itself, for trials: `timestamp` and `value`."""

    kind: Literal["rate", "rate-micro-batch"]
    rows: int = Field(default=10, ge=1)
    """Rows a second (`rate`) or a batch (`rate-micro-batch`)."""
    options: dict[str, str] = {}

    @field_validator("options", mode="before")
    @classmethod
    def _stringify(cls, options: dict) -> dict:
        return as_text(options)


class SocketSource(Spec):
    """Lines of text from a TCP server, for trials: `value`."""

    kind: Literal["socket"]
    host: str = "127.0.0.1"
    port: int = Field(ge=1, le=65535)


Source = by_kind("files", FileSource, KafkaSource, TableSource, RateSource, SocketSource)
