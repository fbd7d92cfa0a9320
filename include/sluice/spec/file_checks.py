"""What of a source of files can be checked as soon as its file is read: what becomes of files that
were read, what folders say, and how a text is cut into records."""

import re
from typing import TYPE_CHECKING

from ..storage.buckets import bucket_of, in_bucket
from ..storage.paths import is_remote, shares_files
from .columns import check_columns, is_atomic

if TYPE_CHECKING:
    from .file_source import FileSource


def check_archive(source: "FileSource") -> None:
    """Raise ValueError for files that cannot be cleaned as a source says."""
    if (source.archive is not None) != (source.clean_source == "archive"):
        raise ValueError(
            "`clean_source: archive` needs `archive: <folder>`, and the folder is for it alone"
        )
    if source.clean_source is None:
        return
    for place in (source.path, source.archive or source.path):
        if is_remote(place) and not in_bucket(place):
            raise ValueError(
                f"`clean_source` works on disks and in S3, and {place!r} lies elsewhere; let "
                "what writes the files remove them"
            )
    if source.archive is None:
        return
    if bucket_of(source.path) != bucket_of(source.archive):
        raise ValueError(
            "`archive` must lie where the landing folder lies, on a disk or in the same "
            "bucket, because a file is moved there in one step"
        )
    if shares_files(source.fixed_folder, source.archive):
        raise ValueError(
            f"`archive` {source.archive!r} and the landing folder {source.fixed_folder!r} lie "
            "within each other, so files would be read again where they were moved to; name a "
            "folder beside it"
        )


def check_partitions(source: "FileSource") -> None:
    """Raise ValueError for columns that folders cannot give."""
    if not source.partition_columns:
        return
    check_columns({**source.columns, **source.partition_columns})
    schema = {name.lower() for name in source.columns}
    for name, type_ in source.partition_columns.items():
        if name.lower() in schema:
            raise ValueError(
                f"column {name!r} stands in `schema` and in `partition_columns`; take it out "
                "of the one that does not say where its values are"
            )
        if not is_atomic(type_):
            raise ValueError(
                f"partition column {name!r} is {type_}, and the name of a folder is one value; "
                "write a type such as string, date or int"
            )


def check_text(source: "FileSource") -> None:
    """Raise ValueError for a schema or a field that does not fit the format."""
    if (source.format == "xml") != (source.row_tag is not None):
        raise ValueError(
            "format xml needs `row_tag: <name>`, the element that is a row"
            if source.format == "xml"
            else "`row_tag` goes with `format: xml`"
        )
    if source.format == "text" and list(source.columns.items()) != [("value", "string")]:
        raise ValueError("format text reads one column; write `schema: {value: string}`")


def check_line_start(source: "FileSource") -> None:
    """Raise ValueError for a pattern that tells no records apart."""
    if source.line_start_pattern is None:
        return
    if source.format != "text" or source.multi_line:
        raise ValueError(
            "`line_start_pattern` cuts a text into records of several lines; write `format: "
            "text` and leave `multi_line` out"
        )
    try:
        fits_all = re.match(source.line_start_pattern, "") is not None
    except re.error as error:
        raise ValueError(f"`line_start_pattern` is no regular expression: {error}") from None
    if fits_all:
        raise ValueError(
            f"`line_start_pattern` fits every line, an empty one too: {source.line_start_pattern}"
            "; write what only the first line of a record begins with"
        )
