"""A Delta table as a source."""

from datetime import UTC, datetime
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from ..storage.paths import Paths
from .model import Options, Spec
from .quantities import Size
from .source_kind import BoundedSource


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


class TableSource(BoundedSource):
    """A Delta table: each of its commits is read once."""

    kind: Literal["table"]
    step: str | None = None
    """The target of an earlier step of this pipeline."""
    path: str | None = None
    """Folder or URI of a table; relative paths lie under the root's `tables/`."""
    name: str | None = None
    """A table's name in Spark's catalog."""
    start: Literal["earliest", "latest"] | TableStart = "earliest"
    """`earliest`: what the table holds at the first run, then every commit. `latest`: only commits
    from now on."""
    change_feed: bool = False
    """Read the change data feed: the columns `_change_type`, `_commit_version` and
    `_commit_timestamp` come as change_type, commit_version and commit_timestamp."""
    skip_change_commits: bool = False
    """Pass over commits that update or delete rows instead of stopping at the first."""
    event_time_order: bool = False
    """Read the table's first state in one batch, so that nothing of it is behind a watermark.
    Delta's own `withEventTimeOrder` is taken and ignored by Delta 4.4.0."""
    schema_tracking: bool = False
    """Keep the table's schema beside the checkpoint, so that columns may be renamed and dropped in
    it."""
    max_files_per_batch: int | None = Field(default=None, ge=1)
    max_bytes_per_batch: Size | None = None
    options: Options = {}
    """Delta's own reader options, passed through as written."""
    bounds: ClassVar[tuple[str, ...]] = ("max_files_per_batch", "max_bytes_per_batch")

    @model_validator(mode="after")
    def _check_place(self) -> "TableSource":
        if sum(place is not None for place in (self.step, self.path, self.name)) != 1:
            raise ValueError("say which table: one of `step`, `path` and `name`")
        if self.change_feed and self.skip_change_commits:
            raise ValueError(
                "`change_feed` reads every change, `skip_change_commits` passes over them; write "
                "one of the two"
            )
        return self

    @property
    def places(self) -> tuple[str, ...]:
        """The table, where the file says where it lies."""
        return (self.path or "",)

    @property
    def reads_changes(self) -> bool:
        """By the change data feed."""
        return self.change_feed

    @property
    def outlives_deletes(self) -> bool:
        """By the change feed, or by passing over such commits."""
        return self.change_feed or self.skip_change_commits

    @property
    def reads_step(self) -> str | None:
        """The earlier step, where one is named."""
        return self.step

    @property
    def why_not_static(self) -> str:
        """A part of the table, or its changes, are no table."""
        asked = ("change_feed", "skip_change_commits", "event_time_order", "schema_tracking")
        given = [name for name in asked if getattr(self, name)]
        given += ["start"] if self.start != "earliest" else []
        return f"a static table is read as a whole; leave `{given[0]}` out" if given else ""

    @property
    def outlives_cleaning(self) -> bool:
        """True where commits that are gone do not stop the stream; see `as_versions`."""
        return self.skip_change_commits and self.options.get("failOnDataLoss") == "false"

    def as_versions(self) -> Self:
        """The table as it is followed where only its versions matter: in one batch up to the
        newest, over commits of every kind, and on where its log was cleaned."""
        told = {"skip_change_commits": True, "options": {"failOnDataLoss": "false"}}
        return self.in_one_batch().model_copy(update=told)

    def reads(self, paths: Paths) -> frozenset[str]:
        """The table, unless it is a step's, which the pipeline knows."""
        return frozenset({self.place(paths)} if self.step is None else ())

    def place(self, paths: Paths) -> str:
        """Its name in the catalog, or its path."""
        return self.name or paths.table("", self.path)
