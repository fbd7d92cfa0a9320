"""The worked pipeline `devices` against plain Python, with a broker of its own."""

import json
from collections import Counter, defaultdict
from datetime import datetime

import pytest
from sluice.demo.devices import TOPIC, generate_landings

from tests.spark.worked import drive

KNOWN = {f"d-{number:02}" for number in range(20)}
Reading = tuple[str, str, str, float]


def read_message(text: str) -> tuple[str, list[Reading]]:
    """What becomes of a message, `entered` or why not, and its readings."""
    try:
        message = json.loads(text)
    except ValueError:
        return "malformed", []
    if message["measures"] is None:
        return "messages: measures_present", []
    pairs = message["measures"].items()
    return "entered", [(message["device"], message["at"], name, value) for name, value in pairs]


def judge(reading: Reading) -> str:
    """What becomes of the first copy of a reading: `written`, or why it is refused."""
    device, at, _, value = reading
    reasons = [] if at else ["null_key", "null_time"]
    reasons += ["future_time"] if at and at > "2090" else []
    reasons += ["device_in_catalogue"] if device not in KNOWN else []
    reasons += ["value_plausible"] if value < -100 else []
    return "|".join(reasons) or "written"


@pytest.fixture(scope="module")
def expected() -> tuple[list[Counter], list[Counter], list[Reading]]:
    """The fates of the messages of each landing, those of the readings, and what is written."""
    seen, messages, readings, kept = set(), [], [], []
    for landing in generate_landings():
        of_messages, of_readings = Counter(), Counter()
        for _, text in landing.messages[TOPIC]:
            fate, made = read_message(text)
            of_messages[fate] += 1
            if fate != "entered":
                of_readings["duplicate" if text in seen else fate] += 1
                seen.add(text)
            for reading in made:
                verdict = "duplicate" if reading in seen else judge(reading)
                seen.add(reading)
                of_readings.update(["made", verdict])
                kept += [reading] if verdict == "written" else []
        messages.append(of_messages)
        readings.append(of_readings)
    return messages, readings, kept


@pytest.fixture(scope="module")
def driven(spark, tmp_path_factory):
    return drive(spark, "devices", tmp_path_factory.mktemp("devices"))


def test_each_landing_has_the_fates_that_plain_python_counts(driven, expected):
    fates = zip(driven.counts("readings"), expected[0], expected[1], strict=True)
    for counts, messages, readings in fates:
        assert (counts.read, counts.entered) == (messages.total(), messages["entered"])
        assert (counts.malformed, counts.rejected) == (
            messages["malformed"],
            messages["messages: measures_present"],
        )
        assert (counts.made, counts.written) == (readings["made"], readings["written"])
        assert (counts.duplicate, counts.late) == (readings["duplicate"], 0)


def test_the_table_and_the_archive_hold_each_reading_once_with_its_site(driven, expected, spark):
    columns = ("device", "date_format(at, \"yyyy-MM-dd'T'HH:mm:ss'Z'\")", "measure", "value")
    assert driven.rows("readings", *columns) == Counter(expected[2])
    archive = spark.read.parquet(f"{driven.root}/archive/readings").selectExpr(*columns)
    assert Counter(map(tuple, archive.collect())) == Counter(expected[2])
    sites = driven.rows("readings", "device", "site").keys()
    assert {(f"d-{n:02}", ("Aachen", "Bonn", "Essen")[n % 3]) for n in range(20)} == sites


def test_the_quarantine_holds_each_refused_reading_and_message_with_its_reasons(driven, expected):
    fates = sum(expected[1], Counter())
    refused = {fate: n for fate, n in fates.items() if fate not in ("made", "written", "duplicate")}
    reasons = Counter(reason for told in Counter(refused).elements() for reason in told.split("|"))
    assert driven.reasons("readings") == reasons
    assert reasons.keys() >= {"null_time", "future_time", "device_in_catalogue", "malformed"}
    assert driven.counts("catalogue")[0].quarantined == 1


def test_the_newest_record_of_each_key_counts_all_readings_of_its_hour(driven, expected):
    hours: dict[tuple, list[float]] = defaultdict(list)
    for device, at, measure, value in expected[2]:
        hours[device, measure, at[:13]].append(value)
    lines = (driven.root / "device_hours.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert {r["id"]: (r["readings"], r["highest"]) for r in records} == {
        "/".join(key): (len(values), max(values)) for key, values in hours.items()
    }
    averages = {r["id"]: r["average"] for r in records}
    for key, values in hours.items():
        assert averages["/".join(key)] == pytest.approx(sum(values) / len(values), abs=0.001)
    assert all(datetime.fromisoformat(r["hour"]).minute == 0 for r in records)
    assert driven.is_on_its_page
