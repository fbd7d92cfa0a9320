"""What a file says of its own columns: the header of a CSV file, the schema inside a Parquet, ORC
or Avro file. Read without Spark."""

import bz2
import csv
import gzip
import io
import json
import re
import zlib
from typing import Any, BinaryIO

import zstandard

from ...spec import FileSource, Records
from ...storage import open_path

_OPENERS: dict[str, Any] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".zst": zstandard.open,
    ".zstd": zstandard.open,
}
_HEADER_LIMIT = 1 << 20
UNREADABLE = (OSError, EOFError, ValueError, IndexError, zlib.error, zstandard.ZstdError)
"""What the readers raise for a file that is not of their format, ends early or went away: the
stream meets it again and says why."""


NOT_UNPACKED = (".snappy", ".lz4")
"""Compression whose Hadoop reader takes any file for an empty one."""


def why_unpackable(path: str) -> str | None:
    """Why a compressed file would read as no rows though it is none; None where that cannot
    happen."""
    name = path.lower()
    if name.endswith(NOT_UNPACKED):
        return "compressed in a way that is not read; gz, bz2 and zst are"
    if not name.endswith(".bz2"):
        return None
    try:
        with open_path(path).open("rb") as handle:
            head = handle.read(10)
    except OSError:
        return None  # gone or refused: that is found elsewhere
    sound = not head or (
        head[:3] == b"BZh" and head[4:] in (b"1AY&SY", b"\x17rE8P\x90")
    )  # a block, or the end of an empty file
    return None if sound else "cannot be read: not a bzip2 file"


def csv_option(source: Records, *names: str, default: str) -> str:
    """A reader option under any of its names, in any case."""
    options = {k.lower(): v for k, v in source.options.items()}
    return next((options[n] for n in names if n in options), default)


def record_pattern(source: Records, *, closed: bool = False) -> str:
    """A regular expression (of Python and of Java) for one CSV record: quoted values may hold
    separators and line breaks.

    closed: match only records whose quotes are closed; otherwise an open quote reaches to the end
    of the text. A quote inside quotes is written twice (RFC 4180) unless the option `escape` says
    otherwise. Every repetition is possessive, so that neither engine recurses or backtracks on a
    long value.
    """
    separator, quote, escape = (
        csv_option(source, *names, default=d)
        for *names, d in (("sep", "delimiter", ","), ("quote", '"'), ("escape", '"'))
    )
    plain = rf"(?:(?!{re.escape(separator)})[^\r\n])*+"
    if not quote:
        return r"[^\r\n]*+"
    q, e = re.escape(quote), re.escape(escape or quote)
    inside = rf"[^{q}]++|{q}{q}" if e == q else rf"[^{q}{e}]++|{e}[\s\S]|{q}{q}"
    end = q if closed else rf"(?:{q}|(?![\s\S]))"
    quoted = rf"{q}(?:{inside})*+{end}"
    field = rf"(?:{quoted}{plain}|(?!{q}){plain})" if closed else rf"(?:{quoted})?+{plain}"
    return rf"{field}(?:{re.escape(separator)}{field})*+"


def read_csv_header(path: str, source: FileSource) -> tuple[str, tuple[str, ...]] | None:
    """The first record that is not blank, as it stands in the file and as names; None when there is
    none."""
    handle = open_path(path)
    opener = _OPENERS.get(handle.suffix.lower())
    with handle.open("rb") as raw:
        stream = io.BufferedReader(opener(raw, "rb")) if opener else raw
        text = io.TextIOWrapper(
            stream,
            encoding=source.encoding,
            errors="replace",
            newline="" if source.multi_line else None,
        )
        line = _first_record(text, source)
    if line is None:
        return None
    csv.field_size_limit(
        _HEADER_LIMIT
    )  # a garbage file is one long line: its own limit of 128 KB would be an error here
    reader = csv.reader(
        io.StringIO(line, newline=""),
        delimiter=csv_option(source, "sep", "delimiter", default=","),
        quotechar=csv_option(source, "quote", default='"') or None,
    )
    return line, tuple(name.strip() for name in next(reader, []))


def _first_record(text: io.TextIOWrapper, source: FileSource) -> str | None:
    """The first record that is neither blank nor a comment."""
    if source.multi_line:
        records = (
            match[0]
            for match in re.finditer(
                record_pattern(source), text.read(_HEADER_LIMIT).lstrip("\ufeff")
            )
        )
    else:
        records = (
            line.lstrip("\ufeff").rstrip("\n")
            for line in iter(lambda: text.readline(_HEADER_LIMIT), "")
        )
    comment = csv_option(source, "comment", default="")
    return next(
        (
            record
            for record in records
            if record.strip() and not (comment and record.startswith(comment))
        ),
        None,
    )


def read_schema(path: str, format_: str) -> tuple[str, tuple[str, ...]]:
    """The schema of a Parquet, ORC or Avro file as text, and its top-level columns.

    Raises one of UNREADABLE.
    """
    with open_path(path).open("rb") as handle:
        if format_ == "avro":
            return _avro_schema(handle)
        if format_ == "orc":
            from pyarrow import orc

            schema = orc.ORCFile(handle).schema
        else:
            from pyarrow import parquet

            schema = parquet.read_schema(handle)
        return schema.to_string(show_field_metadata=False, show_schema_metadata=False), tuple(
            schema.names
        )


def _avro_schema(handle: BinaryIO) -> tuple[str, tuple[str, ...]]:
    """An Avro file begins with `Obj`, 1 and a map whose `avro.schema` is JSON."""
    if handle.read(4) != b"Obj\x01":
        raise ValueError("not an Avro file")
    while count := _avro_long(handle):
        if count < 0:  # the block's size in bytes follows
            _avro_long(handle)
        for _ in range(abs(count)):
            key, value = (handle.read(_avro_long(handle)) for _ in range(2))
            if key == b"avro.schema":
                return value.decode(), tuple(
                    field["name"] for field in json.loads(value).get("fields", [])
                )
    raise ValueError("an Avro file without a schema")


def _avro_long(handle: BinaryIO) -> int:
    """A zigzag number of seven bits a byte."""
    value, shift = 0, 0
    while True:
        byte = handle.read(1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)
        shift += 7
