"""What a queue says of new objects: every form S3's events come in.

No message is gone before its files are committed.
"""

import json
import uuid

import pytest
from sluice.backlog.notices import (
    _sqs,
    delete_notices,
    parse_notice,
    receive_notices,
    return_notices,
    split_settled,
    waiting_count,
)
from sluice.errors import SourceError, TransientError
from sluice.spec import FileSource
from sluice.storage import aws_client

KEY = "in/a b+c%20é.csv"
ENCODED = "in/a+b%2Bc%2520%C3%A9.csv"


def s3_event(key: str = ENCODED, name: str = "ObjectCreated:Put", bucket: str = "lake") -> dict:
    return {
        "eventSource": "aws:s3",
        "eventTime": "2026-01-01T00:00:00.000Z",
        "eventName": name,
        "s3": {"bucket": {"name": bucket}, "object": {"key": key, "size": 7}},
    }


DIRECT = json.dumps({"Records": [s3_event()]})
FORMS = {
    "direct": DIRECT,
    "through_sns": json.dumps({"Type": "Notification", "TopicArn": "t", "Message": DIRECT}),
    "eventbridge": json.dumps(
        {
            "source": "aws.s3",
            "detail-type": "Object Created",
            "time": "2026-01-01T00:00:00Z",
            "detail": {"bucket": {"name": "lake"}, "object": {"key": KEY, "size": 7}},
        }
    ),
    "eventbridge_through_sns": json.dumps(
        {
            "Type": "Notification",
            "Message": json.dumps(
                {
                    "source": "aws.s3",
                    "detail-type": "Object Created",
                    "time": "2026-01-01T00:00:00Z",
                    "detail": {"bucket": {"name": "lake"}, "object": {"key": KEY, "size": 7}},
                }
            ),
        }
    ),
}


@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS)
def test_a_created_object_is_read_out_of_every_form_of_message(body):
    [file] = parse_notice(body)
    assert (file.path, file.size, file.modified) == (f"s3a://lake/{KEY}", 7, 1767225600.0)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "lake"}),
        json.dumps({"Records": [s3_event(name="ObjectRemoved:Delete")]}),
        json.dumps(
            {
                "source": "aws.s3",
                "detail-type": "Object Deleted",
                "time": "2026-01-01T00:00:00Z",
                "detail": {},
            }
        ),
    ],
)
def test_a_message_about_nothing_new_names_no_file(body):
    assert parse_notice(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "",
        "not json",
        "[]",
        "null",
        "{}",
        '{"Records": [{}]}',
        '{"Records": 1}',
        '{"Type": "Notification"}',
        '{"source": "aws.s3"}',
        '"text"',
    ],
)
def test_a_message_of_another_kind_is_told_from_one_about_nothing(body):
    assert parse_notice(body) is None


@pytest.fixture
def queue(s3):
    """A queue that a bucket's events go to, and the source that reads the bucket."""
    name = f"q-{uuid.uuid4().hex[:12]}"
    bucket = s3.create_bucket(name)
    return s3.create_queue(bucket), FileSource.model_validate(
        {"path": f"{bucket}/in", "pattern": "*.csv", "format": "csv", "schema": {"id": "string"}}
    )


def test_objects_that_land_are_named_by_the_queue_and_others_are_not(queue, s3):
    url, source = queue
    for name in ("a.csv", "day=1/b c.csv", "_hidden/c.csv", "d.txt", "e.csv.tmp"):
        s3.put(f"{source.path}/{name}", "id\n")
    s3.put(f"{source.path}-other/f.csv", "id\n")
    notices = receive_notices(url, source, hold=60, wait=0)[0]
    assert {f.path for notice in notices for f in notice.files} == {
        f"{source.path}/a.csv",
        f"{source.path}/day=1/b c.csv",
    }
    assert all(notice.understood for notice in notices) and len(notices) >= 6
    assert receive_notices(url, source, hold=60, wait=0)[0] == []  # held by this run


def test_a_message_goes_only_when_all_its_files_are_committed(queue):
    url, source = queue
    name = source.path.removeprefix("s3a://").removesuffix("/in")
    delete_notices(url, receive_notices(url, source, hold=600, wait=0)[0])  # S3's own test
    for body in (
        json.dumps(
            {"Records": [s3_event("in/1.csv", bucket=name), s3_event("in/2.csv", bucket=name)]}
        ),
        json.dumps({"Records": [s3_event("in/3.csv", "ObjectRemoved:Delete", name)]}),
        "what is this?",
    ):
        aws_client("sqs").send_message(QueueUrl=url, MessageBody=body)
    taken = receive_notices(url, source, hold=600, wait=0)[0]
    one, two = f"{source.path}/1.csv", f"{source.path}/2.csv"
    assert [[f.path for f in notice.files] for notice in split_settled(taken, {one})[0]] == [[]]
    assert [[f.path for f in notice.files] for notice in split_settled(taken, {one, two})[0]] in (
        [[one, two], []],
        [[], [one, two]],
    )


def test_what_is_returned_can_be_taken_again_and_what_is_deleted_cannot(queue):
    url, source = queue
    name = source.path.removeprefix("s3a://").removesuffix("/in")
    for number in range(23):
        aws_client("sqs").send_message(
            QueueUrl=url,
            MessageBody=json.dumps({"Records": [s3_event(f"in/{number}.csv", bucket=name)]}),
        )
    aws_client("sqs").send_message(QueueUrl=url, MessageBody="what is this?")
    assert waiting_count(url) >= 24
    taken = receive_notices(url, source, hold=600, wait=0)[0]
    settled, left = split_settled(taken, {f"{source.path}/{number}.csv" for number in range(20)})
    assert sorted(len(notice.files) for notice in left) == [0, 1, 1, 1]
    assert delete_notices(url, settled) == 0 and return_notices(url, left) == 0
    again = receive_notices(url, source, hold=600, wait=0)[0]
    assert {f.name for notice in again for f in notice.files} == {"20.csv", "21.csv", "22.csv"}
    assert [notice.understood for notice in again].count(False) == 1
    assert delete_notices(url, again) == 0 and waiting_count(url) == 0


def test_a_limit_leaves_the_rest_in_the_queue(queue):
    url, source = queue
    receive_notices(url, source, hold=600, wait=0)
    for number in range(15):
        aws_client("sqs").send_message(
            QueueUrl=url, MessageBody=json.dumps({"Records": [s3_event(f"in/{number}.csv")]})
        )
    assert len(receive_notices(url, source, hold=600, limit=12, wait=0)[0]) == 12
    assert len(receive_notices(url, source, hold=600, wait=0)[0]) == 3


def test_an_absent_queue_and_one_that_is_away_are_two_things(queue, s3):
    url, source = queue
    with pytest.raises(SourceError, match="the queue does not exist.*Create it"):
        receive_notices(url + "-none", source, hold=1, wait=0)
    with s3.outage(), pytest.raises(TransientError):
        receive_notices(url, source, hold=1, wait=0)


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("sqs.eu-central-1.amazonaws.com", "eu-central-1"),
        ("eu-west-1.queue.amazonaws.com", "eu-west-1"),
        ("127.0.0.1:5000", "us-east-1"),
    ],
)
def test_a_queue_is_asked_in_its_own_region(s3, host, region):
    assert _sqs("https" + f"://{host}/123456789012/new-files").meta.region_name == region
