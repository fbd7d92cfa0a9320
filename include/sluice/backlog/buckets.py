"""Lists a landing folder in an S3 bucket as Spark's file source would: its objects by pages of a
thousand, the hidden ones left out."""

from collections.abc import Iterator
from functools import cache

from ..storage import s3_client, split_uri, store_errors
from .globs import compile_glob, expand_braces, has_magic, literal_start

Listed = tuple[str, int, float]
"""Path, size in bytes, modification time in epoch seconds."""


def walk_bucket(root: str, after: str | None = None) -> Iterator[Listed]:
    """Every object below a path of a bucket, which may hold globs.

    A prefix without objects is an empty folder.

    Args: after: path of the folder; only objects whose keys sort after it are listed. Raises
    SourceError for an absent bucket.
    """
    bucket, key = split_uri(root.rstrip("/"))
    start = {"StartAfter": split_uri(after)[1]} if after else {}
    for pattern in expand_braces(key):
        prefix = literal_start(pattern.lstrip("/")) if has_magic(pattern) else pattern.strip("/")
        folder = f"{prefix}/" if prefix and not has_magic(pattern) else prefix
        objects = list(_list(root, bucket, folder, **start))
        if not objects and folder != prefix and not after:  # the path may name one object
            objects = [
                entry for entry in _list(root, bucket, prefix, MaxKeys=1) if entry["Key"] == prefix
            ]
        for entry in objects:
            if _matches(pattern, entry["Key"]):
                yield (
                    f"{root.partition('://')[0]}://{bucket}/{entry['Key']}",
                    entry["Size"],
                    entry["LastModified"].timestamp(),
                )


def is_below(root: str, path: str) -> bool:
    """True for an object that a path of a bucket, which may hold globs, leads to."""
    (bucket, pattern), (there, key) = split_uri(root.rstrip("/")), split_uri(path)
    return bucket == there and any(_matches(one, key) for one in expand_braces(pattern))


def _matches(pattern: str, key: str) -> bool:
    """True for an object that is, or lies below, what a glob without braces names; an object whose
    name ends in a slash only marks a folder."""
    parts, names = [part for part in pattern.split("/") if part], key.split("/")
    if (
        not names[-1]
        or len(names) < len(parts)
        or any(_is_hidden(name) for name in names[len(parts) : -1])
    ):
        return False
    return all(_compiled(part).fullmatch(name) for part, name in zip(parts, names, strict=False))


_compiled = cache(compile_glob)


def _list(uri: str, bucket: str, prefix: str, **how: object) -> Iterator[dict]:
    with store_errors(uri):
        pages = (
            s3_client()
            .get_paginator("list_objects_v2")
            .paginate(Bucket=bucket, Prefix=prefix, **how)
        )
        for page in pages:
            yield from page.get("Contents", [])
            if how.get("MaxKeys"):
                return


def _is_hidden(folder: str) -> bool:
    """True for folders Spark leaves out where it lists objects instead of folders: nearly its rule
    for folders, to the letter."""
    return folder.startswith(".") or (
        folder.startswith("_")
        and "=" not in folder
        and folder not in ("_metadata", "_common_metadata")
    )


def find_object(path: str) -> Listed | None:
    """One object, by one request; None when it is not there."""
    bucket, key = split_uri(path)
    try:
        with store_errors(path):
            found = s3_client().head_object(Bucket=bucket, Key=key)
    except FileNotFoundError:
        return None
    return path, found["ContentLength"], found["LastModified"].timestamp()
