"""Seeded CloudTrail deliveries: the same seed gives the same bytes.

A day is some hours of two regions, each hour a gzipped document with an array of events. What a
bucket holds is in them: a delivery made twice under two names, events that come again in the next
one, a region that is a day late, digests, documents that broke, empty ones, events without an id
or a time, and one from the year 2099.
"""

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from .landing import Landing, pack

FIRST_DAY = datetime(2025, 6, 1, tzinfo=UTC)
DAYS = 3
HOURS = (0, 4, 8, 12, 16, 20)
ACCOUNT = "123456789012"
REGIONS = ("eu-central-1", "us-east-1")
_CALLS = (
    ("ec2", "DescribeInstances", True),
    ("s3", "GetObject", True),
    ("s3", "PutObject", False),
    ("sts", "AssumeRole", True),
    ("kms", "Decrypt", True),
    ("iam", "ListUsers", True),
    ("ec2", "TerminateInstances", False),
)
_ERRORS = ("AccessDenied", "Client.UnauthorizedOperation", "ThrottlingException")


def generate_landings(seed: int = 7, events: int = 100) -> Iterator[Landing]:
    """What each day delivers. Args: events: of an hour of a region."""
    rng = random.Random(seed)  # noqa: S311 (made to be repeatable, not secret)
    late: dict[str, bytes] = {}
    for day in range(DAYS):
        start = FIRST_DAY + timedelta(days=day)
        files = late
        held: dict[str, bytes] = {}
        before: list[dict] = []
        for region in REGIONS:
            for hour in HOURS:
                at = start + timedelta(hours=hour)
                again = rng.sample(before, min(len(before), events // 20))
                before = [_event(rng, at, region) for _ in range(events)]
                name, document = _name(rng, at, region), _document(before + again)
                # One region's evening comes with the next day's deliveries.
                kept = held if region == REGIONS[1] and hour == HOURS[-1] else files
                kept[name] = pack(name, document)
        files |= _odd_files(rng, start, files) | {
            _name(rng, start, REGIONS[0]): pack(".gz", _document(_odd_events(rng, start, day)))
        }
        late = held
        yield Landing(f"{start:%Y-%m-%d}", files)


def _name(rng: random.Random, at: datetime, region: str, kind: str = "CloudTrail") -> str:
    """The path CloudTrail gives a file."""
    unique = "".join(
        rng.choices("ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789", k=16)
    )
    return (
        f"AWSLogs/{ACCOUNT}/{kind}/{region}/{at:%Y/%m/%d}/"
        f"{ACCOUNT}_{kind}_{region}_{at:%Y%m%dT%H%MZ}_{unique}.json.gz"
    )


def _document(events: list[dict]) -> str:
    return json.dumps({"Records": events}, separators=(",", ":"))


def _event(rng: random.Random, hour: datetime, region: str) -> dict[str, Any]:
    """One event of the four hours from `hour`; some fail, a few are what people look for."""
    service, name, read_only = rng.choice(_CALLS)
    user = f"user-{rng.randrange(40):02}"
    at = hour + timedelta(seconds=rng.randrange(4 * 3600))
    event: dict[str, Any] = {
        "eventVersion": "1.09",
        "userIdentity": {
            "type": "IAMUser",
            "principalId": f"AIDA{rng.randrange(16**8):08X}",
            "arn": f"arn:aws:iam::{ACCOUNT}:user/{user}",
            "accountId": ACCOUNT,
            "userName": user,
            "sessionContext": {"attributes": {"mfaAuthenticated": rng.choice(("true", "false"))}},
        },
        "eventTime": f"{at:%Y-%m-%dT%H:%M:%SZ}",
        "eventSource": f"{service}.amazonaws.com",
        "eventName": name,
        "awsRegion": region,
        "sourceIPAddress": f"198.51.100.{rng.randrange(256)}",
        "userAgent": "aws-cli/2.27.0",
        "requestParameters": {"target": f"{service}-{rng.randrange(1000)}", "tags": ["a", "b"]},
        "responseElements": None,
        "eventID": str(UUID(int=rng.getrandbits(128))),
        "readOnly": read_only,
        "eventType": "AwsApiCall",
        "recipientAccountId": ACCOUNT,
    }
    chance = rng.random()
    if chance < 0.05:
        event |= {"errorCode": rng.choice(_ERRORS), "errorMessage": 'not allowed to "call" this'}
    elif chance < 0.055:
        event["userIdentity"] = {"type": "Root", "arn": f"arn:aws:iam::{ACCOUNT}:root"}
    elif chance < 0.065:
        event |= {"eventSource": "signin.amazonaws.com", "eventName": "ConsoleLogin"}
        event["additionalEventData"] = {"MFAUsed": rng.choice(("Yes", "No"))}
    elif chance < 0.07:
        event["eventSource"] = "unknown"
    elif chance < 0.075:
        event["recipientAccountId"] = "HIDDEN_DUE_TO_SECURITY_REASONS"
    return event


def _odd_events(rng: random.Random, start: datetime, day: int) -> list[dict]:
    """Events that no rule can judge: without an id or a time, with a time that is none; on the
    second day one from 2099."""
    events = [_event(rng, start, REGIONS[0]) for _ in range(6)]
    for event in events[:2]:
        event["eventID"] = None
    del events[2]["eventTime"]
    events[3]["eventTime"] = "yesterday"
    if day == 1:
        events[4]["eventTime"] = "2099-12-31T23:59:59Z"
    return events


def _odd_files(rng: random.Random, start: datetime, files: dict[str, bytes]) -> dict[str, bytes]:
    """A delivery made twice, a digest, an empty document, one whose text was cut, and one whose
    bytes were."""
    whole = rng.choice(sorted(files))
    at, region = start + timedelta(hours=2), REGIONS[0]
    cut = _document([_event(rng, at, region) for _ in range(3)])
    packed = pack(".gz", _document([_event(rng, at, region) for _ in range(9)]))
    return {
        _name(rng, at, region): files[whole],
        _name(rng, at, region, "CloudTrail-Digest"): pack(".gz", '{"digestStartTime": "x"}'),
        _name(rng, at, region): pack(".gz", _document([])),
        _name(rng, at, region): pack(".gz", cut[: len(cut) // 2]),
        _name(rng, at, region): packed[: len(packed) // 2],
    }
