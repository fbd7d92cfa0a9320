"""Where a bucket's own events say which objects are new."""

import re
from datetime import timedelta

from pydantic import field_validator

from .model import Spec
from .quantities import Duration


class Notifications(Spec):
    """A queue (SQS) that names each new object, so that no run has to list the folder to find
    it."""

    queue: str
    """The queue's URL. S3's events come there directly, through SNS or through EventBridge; no
    other step may read it."""
    audit_every: Duration = timedelta(days=1)
    """A run lists the whole folder at least this often, and its report names files that no message
    named."""

    @field_validator("queue")
    @classmethod
    def _check_url(cls, queue: str) -> str:
        if not re.fullmatch(r"https?://[^/\s]+/\S+", queue):
            raise ValueError(
                "not the URL of a queue; write what SQS shows for it: "
                "https://sqs.example.com/123456789012/new-files"
            )
        return queue

    @field_validator("audit_every")
    @classmethod
    def _check_period(cls, period: timedelta) -> timedelta:
        if not period:
            raise ValueError(
                "a queue may lose a message, so the folder is listed now and then; write a "
                "duration above zero, or leave out `notifications` to list it each time"
            )
        return period
