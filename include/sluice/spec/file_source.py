"""A landing folder as a source."""

import re
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from ..storage.buckets import in_bucket
from ..storage.paths import Paths, resolve_path, shares_files
from .file_checks import check_archive, check_line_start, check_partitions, check_text
from .notifications import Notifications
from .quantities import Size
from .records import Records

_MAGIC = re.compile(r"[{}\[\]*?\\]")


class FileSource(Records):
    """Files that arrive in a folder; each is read once, in order of modification time."""

    kind: Literal["files"] = "files"
    path: str = Field(min_length=1)
    """Folder, read recursively; a path may hold globs: `landing/*/orders`."""
    pattern: str = "*"
    """Glob that file names must match. Names that start with `.` or `_`, or end in `.tmp` or
    `._COPYING_`, are never read."""
    format: Literal["json", "csv", "text", "xml", "parquet", "orc", "avro"]
    """json, csv, text, xml, parquet, orc or avro; text files also compressed, as their names
    say."""
    row_tag: str | None = Field(default=None, pattern=r"^[A-Za-z_][\w.:-]*$")
    """XML only: the element that is a row, wherever in a file it stands. A file is read whole."""
    attribute_prefix: str = ""
    """XML only: what stands before the name of an attribute in the name of its column."""
    multi_line: bool = False
    """JSON: one array or object spread over lines per file. CSV: quoted values may hold line
    breaks."""
    line_start_pattern: str | None = None
    """Text only: a regular expression that the first line of each record begins with, such as
    `[0-9]{4}-[0-9]{2}-[0-9]{2} `; other lines belong to the record above them, as those of a stack
    trace do. A file is then read whole."""
    header: bool = True
    """CSV only: the first line of each file names the columns."""
    file_date: str | None = None
    """strptime pattern of the date in a file's relative path, e.g. `%Y-%m-%d`; a backfill picks
    files by it."""
    partition_columns: dict[str, str] = {}
    """Column name -> Spark type of what folders say: `{day: date}` of `day=2026-01-31/`. A file in
    no such folder, or in one whose name is not of the type, has malformed records only."""
    clean_source: Literal["archive", "delete"] | None = None
    """What becomes of a file once its batch is committed: it is moved to `archive`, or deleted.
    Without it, it stays."""
    archive: str | None = None
    """Folder outside of `path`, on a disk or in the same bucket as it: files lie there as they lay
    below `path`."""
    ordered_by: Literal["name", "folder"] | None = None
    """What sorts in the order in which files arrive: their names (a time or a counter leads them)
    or their folders (`dt=2026-01-31/`, whatever the names). On S3 and on a disk a run then looks at
    the end of the folder alone, from the last 900 names or the last two folders that were read, and
    not at a history of a million files."""
    latest_first: bool = False
    """The newest files of a backlog come first, in batches as large as the bounds below say; the
    older ones follow, in this run or, where its `budget` is spent, in later ones."""
    notifications: Notifications | None = None
    """S3 only: a queue names the new objects to scheduled runs. Without it each run lists the
    folder."""
    max_files_per_batch: int | None = Field(default=None, ge=1)
    """Without it, and without `max_bytes_per_batch`, a batch is bounded by the driver's memory and
    free disk."""
    max_bytes_per_batch: Size | None = None
    """`500 MB`; a batch takes at least one file."""
    bounds: ClassVar[tuple[str, ...]] = ("max_files_per_batch", "max_bytes_per_batch")
    refused: ClassVar[dict[str, str]] = {
        "filenameonly": "a file is known by its whole path, and of two files of one name in two "
        "folders it reads one",
        "latestfirst": "what a row finds in the table then hangs on how the backlog was cut; where "
        "that decides nothing, write `latest_first: true`",
        "maxfileage": "it passes over old files without a word",
        "cleansource": "Spark cleans a batch when it plans the next, so never a run's last, and "
        "passes over what fails; write `clean_source: delete` or `archive`",
        "ignorecorruptfiles": "the rest of a broken file is passed over without a word, and not "
        "counted",
        "ignoremissingfiles": "a file that is gone is passed over without a word, and not counted",
        "modifiedafter": "the probe would find older files waiting in each run",
        "modifiedbefore": "the probe would find younger files waiting in each run",
    }
    own_fields: ClassVar[dict[str, str]] = {
        "rowtag": "`row_tag`",
        "sourcearchivedir": "`archive: <folder>`",
        "attributeprefix": "`attribute_prefix`",
        "pathglobfilter": "`pattern`",
        "recursivefilelookup": "nothing (folders are always read with those below them)",
    }

    @model_validator(mode="after")
    def _check_notifications(self) -> "FileSource":
        if self.notifications and not in_bucket(self.path):
            raise ValueError(
                f"`notifications` are S3's, and {self.path!r} lies elsewhere; write "
                "`path: s3a://bucket/folder`, or leave out `notifications`"
            )
        if self.notifications and self.ordered_by:
            raise ValueError(
                "`ordered_by` shortens listings, and with `notifications` a listing is an audit, "
                "which is always whole; leave out one of the two"
            )
        return self

    @model_validator(mode="after")
    def _check_latest_first(self) -> "FileSource":
        if not self.latest_first:
            return self
        if not self.is_bounded:
            raise ValueError(
                "`latest_first` orders batches, and without a bound one batch takes the whole "
                "backlog; write `max_files_per_batch` or `max_bytes_per_batch`"
            )
        given = [name for name in ("ordered_by", "notifications") if getattr(self, name)]
        if given:
            raise ValueError(
                f"`{given[0]}` lets a run look for files behind those that were read, and with "
                "`latest_first` older ones wait before them; leave out one of the two"
            )
        return self

    @model_validator(mode="after")
    def _check_order(self) -> "FileSource":
        if self.ordered_by and _MAGIC.search(self.path):
            raise ValueError(
                "`ordered_by` needs a path without globs, because what they match sorts within "
                "each folder only; name the folder above them"
            )
        return self

    @model_validator(mode="after")
    def _check_kind(self) -> "FileSource":
        check_archive(self)
        check_partitions(self)
        check_text(self)
        check_line_start(self)
        return self

    @property
    def newest_first(self) -> bool:
        """As `latest_first` says."""
        return self.latest_first

    @property
    def fixed_folder(self) -> str:
        """The folder that everything lies below: `path`, or what comes before its first glob."""
        before = _MAGIC.split(self.path, maxsplit=1)[0]
        return self.path if before == self.path else before.rpartition("/")[0]

    def may_read_files_of(self, other: "FileSource") -> bool:
        """Whether two sources may read one file: folders within each other, and not a pattern of
        its own for each."""
        apart = self.pattern != other.pattern and "*" not in (self.pattern, other.pattern)
        return not apart and shares_files(self.fixed_folder, other.fixed_folder)

    @property
    def declared(self) -> dict[str, str]:
        """The schema, and what folders say."""
        return {**self.columns, **self.partition_columns}

    @property
    def is_read_by_lines(self) -> bool:
        """Unless a record may span lines, or another sign than a line break ends it."""
        return not self.spans_lines and not any(o.lower() == "linesep" for o in self.options)

    @property
    def spans_lines(self) -> bool:
        """As `multi_line` and `line_start_pattern` say; elements of XML always may."""
        return self.multi_line or self.line_start_pattern is not None or self.format == "xml"

    @property
    def record_start(self) -> str | None:
        """As `line_start_pattern` says."""
        return self.line_start_pattern

    @property
    def notified(self) -> Notifications:
        """The notifications of a source that has some."""
        assert self.notifications is not None
        return self.notifications

    @property
    def places(self) -> tuple[str, ...]:
        """The folder."""
        return (self.path,)

    def reads(self, paths: Paths) -> frozenset[str]:
        """The folder, up to the first part of its path that is a pattern."""
        return frozenset({resolve_path(re.split(r"/[^/]*[{\[*?\\]", self.path)[0], ".")})

    @property
    def jar_sets(self) -> frozenset[str]:
        """Spark's reader of Avro is no part of Spark."""
        return super().jar_sets | ({"avro"} if self.format == "avro" else set())

    @property
    def chooses_by_date(self) -> bool:
        """Files are chosen where their names carry a date."""
        return self.file_date is not None

    @property
    def queue(self) -> str | None:
        """The queue of the bucket's events."""
        return self.notifications.queue if self.notifications is not None else None
