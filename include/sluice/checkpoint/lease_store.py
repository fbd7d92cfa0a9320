"""Where leases lie: numbered files that are created exclusively, on a local disk or in an S3
bucket.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from ..errors import TerminalError
from ..storage import create_file, replace_file, s3_client, split_uri, store_errors
from .holder import Holder

_NAME = re.compile(r"(\d{10})\.json")


@dataclass(frozen=True)
class Claim:
    """The newest claim: its fencing number, who made it (None: unreadable), and a mark that changes
    with each heartbeat. `silent`: seconds since the last one."""

    number: int
    holder: Holder | None
    beat: str
    silent: float


class LeaseStore(Protocol):
    """What a lease needs of a place.

    Numbers only grow: a later claim outranks every earlier one.
    """

    def newest(self) -> Claim | None:
        """The claim with the highest number."""

    def create(self, number: int, text: str) -> bool:
        """Claim a number; False when somebody has it."""

    def write(self, number: int, text: str) -> None:
        """Write one's own claim again: a heartbeat, or its release."""

    def remove_below(self, number: int) -> None:
        """Forget outranked claims."""


def _parse(text: str | bytes) -> Holder | None:
    try:
        return Holder.model_validate_json(text)
    except ValueError:
        return None


class FolderLeases:
    """Claims in a folder.

    Silence is measured by the file system's own clock, which on a shared disk is not this
    machine's.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:010d}.json"

    def _numbers(self) -> list[int]:
        try:
            return [
                int(match[1])
                for name in os.listdir(self.folder)
                if (match := _NAME.fullmatch(name))
            ]
        except FileNotFoundError:
            return []

    def newest(self) -> Claim | None:
        """The claim with the highest number."""
        for number in sorted(self._numbers(), reverse=True):
            with suppress(FileNotFoundError):
                path = self._path(number)
                holder, beaten = _parse(path.read_bytes()), path.stat().st_mtime
                return Claim(
                    number,
                    holder,
                    repr(beaten),
                    self._now() - beaten if holder is None or not holder.released else 0.0,
                )
        return None

    def _now(self) -> float:
        probe = self.folder / f".now.{uuid4().hex[:8]}"
        try:
            probe.touch()
            return probe.stat().st_mtime
        finally:
            probe.unlink(missing_ok=True)

    def create(self, number: int, text: str) -> bool:
        """Claim a number by exclusive create; False when somebody has it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return create_file(self._path(number), text)

    def write(self, number: int, text: str) -> None:
        """Write one's own claim again; nothing when the folder is gone (a finished backfill removes
        its checkpoint)."""
        if self._path(number).exists():
            replace_file(self._path(number), text)

    def remove_below(self, number: int) -> None:
        """Forget outranked claims."""
        for old in self._numbers():
            if old < number:
                self._path(old).unlink(missing_ok=True)


class BucketLeases:
    """Claims in an S3 bucket, by conditional put (`If-None-Match: *`).

    Silence is measured by the store's clock.
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/")
        self.bucket, prefix = split_uri(self.uri)
        self.prefix = f"{prefix}/"

    def _key(self, number: int) -> str:
        return f"{self.prefix}{number:010d}.json"

    def _list(self) -> tuple[list[dict], str]:
        with store_errors(self.uri):
            pages = list(
                s3_client()
                .get_paginator("list_objects_v2")
                .paginate(Bucket=self.bucket, Prefix=self.prefix)
            )
        found = [
            entry
            for page in pages
            for entry in page.get("Contents", [])
            if _NAME.fullmatch(entry["Key"].removeprefix(self.prefix))
        ]
        return sorted(found, key=lambda entry: entry["Key"], reverse=True), pages[-1][
            "ResponseMetadata"
        ]["HTTPHeaders"]["date"]

    def newest(self) -> Claim | None:
        """The claim with the highest number."""
        from email.utils import parsedate_to_datetime

        entries, date = self._list()
        for entry in entries:
            with suppress(FileNotFoundError), store_errors(self.uri):
                found = s3_client().get_object(Bucket=self.bucket, Key=entry["Key"])
                number = int(entry["Key"].removeprefix(self.prefix).removesuffix(".json"))
                silent = (parsedate_to_datetime(date) - found["LastModified"]).total_seconds()
                return Claim(
                    number,
                    _parse(found["Body"].read()),
                    f"{found['LastModified'].isoformat()} {found['ETag']}",
                    silent,
                )
        return None

    def create(self, number: int, text: str) -> bool:
        """Claim a number by conditional put; False when somebody has it."""
        from botocore.exceptions import ClientError

        with store_errors(self.uri):
            try:
                s3_client().put_object(
                    Bucket=self.bucket, Key=self._key(number), Body=text.encode(), IfNoneMatch="*"
                )
            except ClientError as error:
                if error.response["Error"]["Code"] not in (
                    "PreconditionFailed",
                    "ConditionalRequestConflict",
                ):
                    raise
                return self._holds(number, text)
        return True

    def _holds(self, number: int, text: str) -> bool:
        """True when the claim there is this very one: a put whose answer was lost is sent again,
        and then stands in its own way."""
        with suppress(FileNotFoundError), store_errors(self.uri):
            return (
                s3_client().get_object(Bucket=self.bucket, Key=self._key(number))["Body"].read()
                == text.encode()
            )
        return False

    def write(self, number: int, text: str) -> None:
        """Write one's own claim again."""
        with store_errors(self.uri):
            s3_client().put_object(Bucket=self.bucket, Key=self._key(number), Body=text.encode())

    def remove_below(self, number: int) -> None:
        """Forget outranked claims."""
        for entry in self._list()[0]:
            if entry["Key"] < self._key(number):
                with store_errors(self.uri):
                    s3_client().delete_object(Bucket=self.bucket, Key=entry["Key"])


def open_leases(folder: str) -> LeaseStore:
    """The store for a folder or an `s3://`, `s3a://` prefix.

    Raises TerminalError for a store that cannot arbitrate.
    """
    scheme = folder.split("://", 1)[0] if "://" in folder else "file"
    if scheme == "file":
        return FolderLeases(Path(folder.removeprefix("file://")))
    if scheme in ("s3", "s3a"):
        return BucketLeases(folder)
    raise TerminalError(
        "no lease can be held there",
        where=folder,
        value=scheme,
        do="Keep checkpoints on a local disk or on S3",
    )
