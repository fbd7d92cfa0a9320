"""The worked pipeline `cloudtrail` against plain Python, over what the demo lands and over real
events."""

import gzip
import json
from collections import Counter
from datetime import UTC, datetime

import pytest
from sluice.demo.cloudtrail import generate_landings
from sluice.runner import run_pipeline
from sluice.spec import RunRequest
from sluice.storage import PIPELINES

from tests.shared_data import find_shared
from tests.spark.worked import drive


def read_document(content: bytes) -> list[dict] | None:
    """The events of a file; None where it is no document."""
    try:
        return json.loads(gzip.decompress(content))["Records"]
    except (EOFError, ValueError):
        return None


def judge(event: dict) -> str:
    """What becomes of the first copy of an event: `written`, or the reason it is refused."""
    if event["eventID"] is None:
        return "null_key"
    if not event.get("eventTime", "").startswith("2"):
        return "null_time"
    if event["eventTime"] > "2090":
        return "future_time"
    if not event["eventSource"].endswith(".amazonaws.com"):
        return "source_is_a_service"
    return "written" if event["recipientAccountId"].isdigit() else "account_has_12_digits"


@pytest.fixture(scope="module")
def expected() -> tuple[list[Counter], list[dict]]:
    """The fates of each landing, and the events that are written."""
    seen, fates, kept = set(), [], []
    for landing in generate_landings():
        fate = Counter()
        for name, content in landing.files.items():
            if "Digest" in name:
                continue
            events = read_document(content)
            fate.update(read=1, broken=events is None)
            for event in events or []:
                text = json.dumps(event)
                verdict = "duplicate" if text in seen else judge(event)
                seen.add(text)
                fate.update(["made", verdict])
                kept += [event] if verdict == "written" else []
        fates.append(fate)
    return fates, kept


@pytest.fixture(scope="module")
def driven(spark, tmp_path_factory):
    return drive(spark, "cloudtrail", tmp_path_factory.mktemp("cloudtrail"))


def test_each_day_has_the_fates_that_plain_python_counts(driven, expected):
    for counts, fate in zip(driven.counts("events"), expected[0], strict=True):
        refused = sum(fate[reason] for reason in fate if "_" in reason)
        assert (counts.read, counts.malformed) == (fate["read"], fate["broken"])
        assert (counts.made, counts.written) == (fate["made"], fate["written"])
        assert counts.quarantined == refused + fate["broken"]
        assert (counts.duplicate, counts.late) == (fate["duplicate"], 0)
    assert min(fate["duplicate"] for fate in expected[0]) > 50


def test_the_table_holds_each_event_once_under_its_date(driven, expected):
    rows = driven.rows(
        "events", "event_id", "CAST(event_date AS STRING)", "event_name", "user_arn", "error_code"
    )
    assert rows == Counter(
        (
            event["eventID"],
            event["eventTime"][:10],
            event["eventName"],
            event["userIdentity"]["arn"],
            event.get("errorCode"),
        )
        for event in expected[1]
    )
    folders = (driven.root / "tables" / "cloudtrail" / "events").glob("event_date=*")
    days = {f"event_date={event['eventTime'][:10]}" for event in expected[1]}
    assert {folder.name for folder in folders} == days


def test_what_differs_from_service_to_service_stays_json(driven, expected):
    rows = driven.rows("events", "event_id", "request_parameters")
    assert {id_: json.loads(text) for id_, text in rows} == {
        event["eventID"]: event["requestParameters"] for event in expected[1]
    }


def test_the_quarantine_holds_each_refused_event_and_file_with_its_reason(driven, expected):
    total = sum(expected[0], Counter())
    files = {"malformed": 3, "unreadable_file": 3}
    reasons = {reason: n for reason, n in total.items() if "_" in reason}
    assert driven.reasons("events") == reasons | files
    assert {"nobody_works_as_root", "logins_with_mfa", "source_is_a_service"} <= driven.failed(0)
    assert driven.is_on_its_page


def test_real_events_are_written_once_each(spark, tmp_path, monkeypatch):
    file = find_shared("cloudtrail/events.json")
    if file is None:
        pytest.skip("the sample of real events is not here")
    events = [json.loads(line) for line in file.read_text().splitlines()]
    for event in events:  # a log shipper took them out of their documents, and renamed the time
        event["eventTime"] = event.pop("@timestamp")
    folder = tmp_path / "AWSLogs"
    folder.mkdir()
    for number, some in enumerate((events[:60], events[40:])):
        content = gzip.compress(json.dumps({"Records": some}).encode())
        (folder / f"1_CloudTrail_us-east-1_20200914T0{number}00Z_x.json.gz").write_bytes(content)
    monkeypatch.setenv("LANDING", str(tmp_path))
    request = RunRequest(
        pipeline=str(PIPELINES / "cloudtrail" / "cloudtrail.yaml"), root=str(tmp_path / "root")
    )
    report = run_pipeline(request)
    assert (report.error, report.counts.read, report.counts.made) == (None, 2, len(events) + 20)
    assert report.counts.quarantined == 0
    table = spark.read.format("delta").load(f"{tmp_path}/root/tables/cloudtrail/events")
    found = table.select("event_id", "event_time", "user_arn", "error_code", "user_agent").collect()
    assert Counter(map(tuple, found)) == Counter(
        (
            event["eventID"],
            datetime.fromisoformat(event["eventTime"]).astimezone(UTC).replace(tzinfo=None),
            event["userIdentity"].get("arn"),
            event.get("errorCode"),
            event["userAgent"],
        )
        for event in {event["eventID"]: event for event in events}.values()
    )
