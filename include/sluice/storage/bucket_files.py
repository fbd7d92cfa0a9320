"""Objects of S3 as fsspec files, always as they are now: nothing is remembered, and an object is
written whole or not at all.

fsspec's usual S3 file system wants a botocore of its own, remembers listings, and its `exists`
takes an outage for "no".
"""

import io
from typing import BinaryIO

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from .buckets import s3_client, split_uri, store_errors

_HEAD = 1 << 18
"""Bytes read ahead: a header is most often shorter."""


class BucketFileSystem(AbstractFileSystem):
    """S3 through boto3. Paths are `bucket/key`; a folder is there while an object lies below it."""

    protocol = ("s3a", "s3")
    cachable = False

    def info(self, path: str, **kwargs: object) -> dict:
        """Size, type and `LastModified` (UTC). Raises FileNotFoundError."""
        path = self._strip_protocol(path)
        bucket, key = split_uri(path)
        with store_errors(f"s3a://{path}"):
            if key:
                try:
                    found = s3_client().head_object(Bucket=bucket, Key=key)
                    return {
                        "name": path,
                        "size": found["ContentLength"],
                        "type": "file",
                        "LastModified": found["LastModified"],
                        "ETag": found["ETag"],
                    }
                except s3_client().exceptions.ClientError as error:
                    if error.response["Error"]["Code"] not in ("404", "NoSuchKey"):
                        raise
        if not self._has_below(path):
            raise FileNotFoundError(f"no such object: s3a://{path}")
        return {"name": path, "size": 0, "type": "directory"}

    def _type(self, path: str) -> str | None:
        try:
            return self.info(path)["type"]
        except FileNotFoundError:
            return None

    def exists(self, path: str, **kwargs: object) -> bool:
        """Whether it is there; a store that cannot be asked raises."""
        return self._type(path) is not None

    def isdir(self, path: str) -> bool:
        """Whether objects lie below it; a store that cannot be asked raises."""
        return self._has_below(self._strip_protocol(path))

    def _has_below(self, path: str) -> bool:
        bucket, key = split_uri(path)
        with store_errors(f"s3a://{path}"):
            found = s3_client().list_objects_v2(
                Bucket=bucket, Prefix=f"{key}/" if key else "", MaxKeys=1
            )
        return not key or bool(found.get("KeyCount"))

    def isfile(self, path: str) -> bool:
        """Whether it is an object; a store that cannot be asked raises."""
        return self._type(path) == "file"

    def ls(self, path: str, detail: bool = True, **kwargs: object) -> list:
        """What lies in a folder. Raises FileNotFoundError for none."""
        path = self._strip_protocol(path)
        bucket, key = split_uri(path)
        prefix, found, there = f"{key}/" if key else "", [], False
        with store_errors(f"s3a://{path}"):
            for page in (
                s3_client()
                .get_paginator("list_objects_v2")
                .paginate(Bucket=bucket, Prefix=prefix, Delimiter="/")
            ):
                there = there or bool(page.get("KeyCount"))
                found += [
                    {
                        "name": f"{bucket}/{folder['Prefix'].rstrip('/')}",
                        "size": 0,
                        "type": "directory",
                    }
                    for folder in page.get("CommonPrefixes", [])
                ]
                found += [
                    {
                        "name": f"{bucket}/{entry['Key']}",
                        "size": entry["Size"],
                        "type": "file",
                        "LastModified": entry["LastModified"],
                    }
                    for entry in page.get("Contents", [])
                    if entry["Key"] != prefix
                ]  # some writers mark a folder by an object of its name
        if not there and key:
            raise FileNotFoundError(f"no such folder: s3a://{path}")
        return found if detail else [entry["name"] for entry in found]

    def mkdir(self, path: str, create_parents: bool = True, **kwargs: object) -> None:
        """Nothing: a folder is there as soon as something is in it."""

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: object
    ) -> bytes:
        """An object's bytes, or those from `start` to `end`. Raises FileNotFoundError."""
        whole = start is None and end is None
        return self._get(
            path,
            **({} if whole else {"Range": f"bytes={start or 0}-{'' if end is None else end - 1}"}),
        )[0]

    def _get(self, path: str, **how: str) -> tuple[bytes, int, str]:
        """Bytes, the size of the whole object and its ETag, by one request."""
        bucket, key = split_uri(self._strip_protocol(path))
        with store_errors(f"s3a://{bucket}/{key}"):
            try:
                found = s3_client().get_object(Bucket=bucket, Key=key, **how)
            except s3_client().exceptions.ClientError as error:
                if error.response["Error"]["Code"] != "InvalidRange":
                    raise
                return b"", 0, ""  # an empty object has no first byte
            return (
                found["Body"].read(),
                int(found.get("ContentRange", "").rpartition("/")[2] or found["ContentLength"]),
                found["ETag"],
            )

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: object) -> None:
        """Put a whole object in place of the old one."""
        bucket, key = split_uri(self._strip_protocol(path))
        with store_errors(f"s3a://{bucket}/{key}"):
            s3_client().put_object(
                Bucket=bucket,
                Key=key,
                Body=value,
                **({"IfNoneMatch": "*"} if mode == "create" else {}),
            )

    def cp_file(self, path1: str, path2: str, **kwargs: object) -> None:
        """Copy an object within the store, in place of the old one. Raises FileNotFoundError."""
        bucket, key = split_uri(self._strip_protocol(path1))
        there, name = split_uri(self._strip_protocol(path2))
        with store_errors(f"s3a://{bucket}/{key}"):
            s3_client().copy({"Bucket": bucket, "Key": key}, there, name)

    def rm(
        self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None
    ) -> None:
        """Remove an object, or with `recursive` everything below; what is gone already is no
        error."""
        for one in [path] if isinstance(path, str) else path:
            bucket, key = split_uri(self._strip_protocol(one))
            with store_errors(f"s3a://{bucket}/{key}"):
                if not recursive:
                    s3_client().delete_object(Bucket=bucket, Key=key)
                    continue
                for page in (
                    s3_client()
                    .get_paginator("list_objects_v2")
                    .paginate(Bucket=bucket, Prefix=f"{key}/")
                ):
                    if page.get("Contents"):
                        s3_client().delete_objects(
                            Bucket=bucket,
                            Delete={
                                "Objects": [{"Key": entry["Key"]} for entry in page["Contents"]],
                                "Quiet": True,
                            },
                        )

    def _open(
        self, path: str, mode: str = "rb", block_size: int | None = None, **kwargs: object
    ) -> BinaryIO:
        """A small object is read by one request, so that it is never half the old one and half the
        new one; of a large one, what is asked for."""
        if mode != "rb":
            raise NotImplementedError("an object is written whole: use replace_file")
        head, size, etag = self._get(path, Range=f"bytes=0-{_HEAD - 1}")
        return (
            io.BytesIO(head) if len(head) == size else _ObjectReader(self, path, head, size, etag)
        )


class _ObjectReader(AbstractBufferedFile):
    """Reads ranges of one version of an object, so that the header of a large file costs a quarter
    of a megabyte."""

    def __init__(self, fs: BucketFileSystem, path: str, head: bytes, size: int, etag: str) -> None:
        super().__init__(fs, path, "rb", _HEAD, cache_type="readahead", size=size)
        self.etag, self.cache.cache, self.cache.end = etag, head, len(head)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs._get(self.path, Range=f"bytes={start}-{end - 1}", IfMatch=self.etag)[0]
