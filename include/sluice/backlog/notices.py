"""New objects as a queue names them: S3's own events in SQS, sent there directly, through SNS or
through EventBridge. Discovery then costs no listing.

A queue delivers at least once, in any order, and may be set up after the first files: so a name
counts only until the checkpoint knows the file, a message goes only when all its files are
committed, and a full listing still audits the folder now and then.
"""

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus

from ..errors import SourceError, TransientError
from ..spec import FileSource
from ..storage import aws_client
from .buckets import is_below
from .files import LandedFile, is_wanted, source_root

if TYPE_CHECKING:
    from botocore.client import BaseClient

_PAGE = 10  # messages: SQS gives and takes no more at a time


@dataclass(frozen=True)
class Notice:
    """One message. `files`: the objects it says were created; none for a removal or a test.
    `understood`: False for a message of another kind."""

    receipt: str
    files: tuple[LandedFile, ...] = ()
    understood: bool = True


def parse_notice(body: str, scheme: str = "s3a") -> list[LandedFile] | None:
    """The objects a message's body says were created; None for a body that is no event of S3's.

    Keys are percent-encoded in S3's own events and written as they are in EventBridge's.
    """
    try:
        event = json.loads(body)
        if event.get("Type") == "Notification":
            return parse_notice(event["Message"], scheme)
        if event.get("source") == "aws.s3":
            return (
                [_landed(scheme, event["detail"], event["detail"]["object"]["key"], event["time"])]
                if event["detail-type"] == "Object Created"
                else []
            )
        if event.get("Event") == "s3:TestEvent":
            return []
        created = [
            record
            for record in event["Records"]
            if record["eventName"].removeprefix("s3:").startswith("ObjectCreated")
        ]
        return [
            _landed(
                scheme,
                record["s3"],
                unquote_plus(record["s3"]["object"]["key"]),
                record["eventTime"],
            )
            for record in created
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _landed(scheme: str, found: dict, key: str, moment: str) -> LandedFile:
    modified = datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()
    return LandedFile(
        f"{scheme}://{found['bucket']['name']}/{key}",
        int(found["object"].get("size") or 0),
        modified,
    )


def _sqs(queue: str) -> "BaseClient":
    """The client for a queue's own region: boto3 asks the one it is set up for, whatever the URL
    says."""
    found = re.search(r"//sqs\.([\w-]+)\.amazonaws\.|//([\w-]+)\.queue\.amazonaws\.", queue)
    return aws_client("sqs", found and (found[1] or found[2]))


@contextmanager
def _queue_errors(queue: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        if "NonExistentQueue" in error.response["Error"].get(
            "Code", ""
        ) or "QueueDoesNotExist" in error.response["Error"].get("Code", ""):
            raise SourceError(
                "the queue does not exist",
                where="source.notifications.queue",
                value=queue,
                do="Create it, or mend its URL",
            ) from None
        raise TransientError(f"the queue failed: {error}", where=queue, do="Run again") from error
    except (BotoCoreError, OSError) as error:
        raise TransientError(
            f"the queue could not be reached: {error}", where=queue, do="Run again"
        ) from error


def receive_notices(
    queue: str,
    source: FileSource,
    hold: int,
    limit: int = 10_000,
    wait: int = 1,
    seconds: float = 60.0,
) -> tuple[list[Notice], bool]:
    """Take messages until the queue gives none, or the limit or the time is reached; returns them,
    and whether the queue gave all it had.

    Args: queue: its URL. source: whose files count; a message about others is held as one without
    files. hold: seconds for which nobody else gets what was taken (at most 43 200, SQS's limit):
    longer than the run's budget. wait: seconds to wait for a first message; a short wait asks all
    of SQS's servers, none only some. Raises SourceError for an absent queue, TransientError for one
    that cannot be reached.
    """
    scheme, deadline = source_root(source).partition("://")[0], time.monotonic() + seconds
    taken: dict[str, Notice] = {}
    emptied = False
    while not emptied and len(taken) < limit and time.monotonic() < deadline:
        with _queue_errors(queue):
            answer = _sqs(queue).receive_message(
                QueueUrl=queue,
                MaxNumberOfMessages=min(_PAGE, limit - len(taken)),
                VisibilityTimeout=hold,
                WaitTimeSeconds=wait,
            )
        for message in answer.get("Messages", []):
            files = parse_notice(message["Body"], scheme)
            wanted = tuple(
                f
                for f in files or ()
                if is_below(source_root(source), f.path) and is_wanted(source, f.name)
            )
            # The newest receipt is the one that counts.
            taken[message["MessageId"]] = Notice(
                message["ReceiptHandle"], wanted, files is not None
            )
        emptied = not answer.get("Messages")
    return list(taken.values()), emptied


def split_settled(
    notices: Iterable[Notice], committed: set[str]
) -> tuple[list[Notice], list[Notice]]:
    """Messages that may go, and those that must stay.

    Args: committed: paths of all files of committed batches. A message that was not understood
    stays, for the queue's own dead letters.
    """
    settled: list[Notice] = []
    left: list[Notice] = []
    for notice in notices:
        over = notice.understood and all(f.path in committed for f in notice.files)
        (settled if over else left).append(notice)
    return settled, left


def delete_notices(queue: str, notices: list[Notice]) -> int:
    """Delete messages; returns how many the queue kept (they come again, and the checkpoint knows
    their files)."""
    return _in_pages(queue, "delete_message_batch", notices)


def return_notices(queue: str, notices: list[Notice]) -> int:
    """Let messages be taken again at once, because this run will not read their files; returns how
    many stay held until their time is up."""
    return _in_pages(queue, "change_message_visibility_batch", notices, VisibilityTimeout=0)


def _in_pages(queue: str, call: str, notices: list[Notice], **more: int) -> int:
    refused = 0
    for start in range(0, len(notices), _PAGE):
        entries = [
            {"Id": str(number), "ReceiptHandle": notice.receipt, **more}
            for number, notice in enumerate(notices[start : start + _PAGE])
        ]
        with _queue_errors(queue):
            refused += len(
                getattr(_sqs(queue), call)(QueueUrl=queue, Entries=entries).get("Failed", [])
            )
    return refused


def waiting_count(queue: str) -> int:
    """About how many messages can be taken now; the probe's cheap question.

    Zero is not proof: SQS counts with a delay, so an audit must still come.
    """
    with _queue_errors(queue):
        found = _sqs(queue).get_queue_attributes(
            QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages"]
        )
    return int(found["Attributes"]["ApproximateNumberOfMessages"])
