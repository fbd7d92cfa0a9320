"""Where rows come from."""

import codecs
import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from .model import Spec
from .quantities import Size

SYSTEM_COLUMNS = ("_run_id", "_batch_id", "_source", "_ingested_at")
_TYPE = re.compile(
    r"(string|binary|boolean|byte|tinyint|short|smallint|int|integer|long|bigint|float|double|date|timestamp|timestamp_ntz|variant"
    r"|decimal\(\s*\d+\s*,\s*\d+\s*\)|array<.+>|map<.+>|struct<.+>)",
    re.IGNORECASE,
)


class FileSource(Spec):
    """Files that arrive in a folder; each is read once, in order of modification time."""

    kind: Literal["files"] = "files"
    path: str = Field(min_length=1)
    """Folder, read recursively; a path may hold globs: `landing/*/orders`."""
    pattern: str = "*"
    """Glob that file names must match. Names that start with `.` or `_`, or end in `.tmp` or `._COPYING_`, are never read."""
    format: Literal["json", "csv", "text", "parquet", "orc", "avro"]
    columns: dict[str, str] = Field(alias="schema")
    """Column name -> Spark type. `sluice infer` proposes it; a person commits it."""
    multi_line: bool = False
    """JSON: one array or object spread over lines per file. CSV: quoted values may hold line breaks."""
    header: bool = True
    """CSV only: the first line of each file names the columns."""
    encoding: str = "UTF-8"
    unknown_fields: Literal["rescue", "fail", "ignore"] = "rescue"
    """Fields outside the schema: keep them as JSON in `_rescued`, refuse the batch, or leave them out."""
    file_date: str | None = None
    """strptime pattern of the date in a file's relative path, e.g. `%Y-%m-%d`; a backfill picks files by it."""
    ordered_by: Literal["name", "folder"] | None = None
    """What sorts in the order in which files arrive: their names (a time or a counter leads them) or their folders (`dt=2026-01-31/`, whatever the names).
    On S3 the probe then lists only the end of the folder, not a history of a million objects."""
    max_files_per_batch: int | None = Field(default=None, ge=1)
    max_bytes_per_batch: Size | None = None
    options: dict[str, str] = {}
    """Spark's own reader options, passed through as written."""

    @field_validator("columns")
    @classmethod
    def _check_columns(cls, columns: dict[str, str]) -> dict[str, str]:
        if not columns:
            raise ValueError("no columns; `sluice infer` proposes a schema from a sample")
        for name, type_ in columns.items():
            if name.startswith("_"):
                raise ValueError(f"column {name!r}: names that start with `_` are kept for system columns; rename it")
            if not _TYPE.fullmatch(type_.strip()):
                raise ValueError(f"column {name!r} has unknown type {type_!r}; write a Spark SQL type such as string, bigint, double, timestamp")
        lowered = [name.lower() for name in columns]
        if len(set(lowered)) < len(lowered):
            raise ValueError("two columns differ only in case; Spark does not tell them apart")
        return columns

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, encoding: str) -> str:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ValueError("no such encoding; write UTF-8, ISO-8859-1, windows-1252, UTF-16 or another charset by its usual name") from None
        return encoding

    @field_validator("options", mode="before")
    @classmethod
    def _stringify(cls, options: dict) -> dict:
        return {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in (options or {}).items()}

    @model_validator(mode="after")
    def _check_order(self) -> "FileSource":
        if self.ordered_by and re.search(r"[{}\[\]*?\\]", self.path):
            raise ValueError("`ordered_by` needs a path without globs, because what they match sorts within each folder only; name the folder above them")
        return self

    @model_validator(mode="after")
    def _check_text(self) -> "FileSource":
        if self.format == "text" and list(self.columns.items()) != [("value", "string")]:
            raise ValueError("format text reads one column; write `schema: {value: string}`")
        return self
