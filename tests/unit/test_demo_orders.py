"""The demo's landing folder holds all that goes wrong in real ones; a seed makes it again."""

import gzip
import json
from collections import Counter
from datetime import datetime, timedelta

import pytest
from sluice.demo.orders import ROWS, LandingFile, generate_days, land_day
from sluice.errors import SpecError
from sluice.spec import load_pipeline
from sluice.storage import PIPELINES


@pytest.fixture(scope="module")
def days():
    """Three days of 6 000 lines in all: [(day, files)]."""
    return list(generate_days(seed=3, rows=6_000))


def lines_of(files: list[LandingFile]) -> list[str]:
    return [line for file in files for line in file.lines]


def parse(line: str) -> dict | None:
    """The order of a line; None when the line is not JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def time_of(order: dict) -> datetime:
    return datetime.fromisoformat(order["ordered_at"].replace("Z", "+00:00"))


def test_the_same_seed_gives_the_same_bytes():
    first, second = (
        [(day, f.name, f.encode()) for day, files in generate_days(seed=5, rows=600) for f in files]
        for _ in range(2)
    )
    assert first == second


def test_another_seed_gives_other_orders():
    assert list(generate_days(seed=1, rows=600)) != list(generate_days(seed=2, rows=600))


def test_all_files_together_hold_exactly_the_promised_lines(days):
    assert sum(len(lines_of(files)) for _, files in days) == 6_000
    assert ROWS == 100_000


def test_some_files_are_gzipped(days):
    files = [file for _, files in days for file in files]
    packed = [file for file in files if file.name.endswith(".gz")]
    assert 0 < len(packed) < len(files)
    assert gzip.decompress(packed[0].encode()).decode().splitlines() == packed[0].lines


def test_there_are_copies_within_a_file_in_another_file_and_on_the_next_day(days):
    places = [
        (day, file.name, line) for day, files in days for file in files for line in file.lines
    ]
    assert max(Counter(places).values()) > 1
    files_of_line = Counter((day, line) for day, _, line in set(places))
    assert max(files_of_line.values()) > 1
    days_of_line = Counter(line for _, line in {(day, line) for day, _, line in places})
    assert max(days_of_line.values()) > 1


def test_copies_are_whole_copies(days):
    by_id = {}
    for _, files in days:
        for line in lines_of(files):
            order = parse(line)
            if order and order["order_id"]:
                assert by_id.setdefault(order["order_id"], line) == line


def test_rows_are_out_of_order_and_some_come_after_the_watermark(days):
    newest = None
    late = 0
    for _, files in days:
        orders = [
            order
            for line in lines_of(files)
            if (order := parse(line)) and order["ordered_at"] and order["ordered_at"] < "2030"
        ]
        times = [time_of(order) for order in orders]
        assert times != sorted(times)
        late += sum(newest is not None and t < newest - timedelta(days=2) for t in times)
        newest = max(times) if newest is None else max(newest, *times)
    assert late >= 4


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("a line that is not JSON", lambda order: order is None),
        (
            "a value of the wrong type",
            lambda order: order is not None and isinstance(order["amount"], str),
        ),
        ("a row without key", lambda order: order is not None and order["order_id"] is None),
        ("a row without time", lambda order: order is not None and order["ordered_at"] is None),
        (
            "a negative amount",
            lambda order: (
                order is not None and isinstance(order["amount"], float) and order["amount"] < 0
            ),
        ),
        ("an order without items", lambda order: order is not None and order["items"] == []),
        ("a status nobody knows", lambda order: order is not None and order["status"] == "lost"),
        ("a currency nobody knows", lambda order: order is not None and order["currency"] == "XXX"),
        (
            "an e-mail address that is none",
            lambda order: order is not None and "@" not in order["customer"]["email"],
        ),
        ("a field nobody declared", lambda order: order is not None and "coupon" in order),
    ],
)
def test_every_oddity_is_there(days, what, found):
    assert any(found(parse(line)) for _, files in days for line in lines_of(files)), what


def test_exactly_one_order_is_from_2099(days):
    orders = {line for _, files in days for line in lines_of(files) if '"2099-' in line}
    assert len(orders) == 1


def test_a_day_lands_in_one_step_and_whole(tmp_path, days):
    day, files = days[0]
    land_day(tmp_path, day, files)
    assert {path.name for path in (tmp_path / day).iterdir()} == {file.name for file in files}
    assert [path.name for path in tmp_path.iterdir()] == [day]


def test_the_demos_pipeline_has_rules_of_all_three_kinds_and_one_on_the_table(monkeypatch):
    monkeypatch.setenv("ORDERS_SCHEDULE", "20 seconds")
    pipeline = load_pipeline(PIPELINES / "orders.yaml")
    assert pipeline.schedule == timedelta(seconds=20)
    rules = pipeline.steps[0].rules
    assert {rule.on_fail for rule in rules} == {"warn", "quarantine", "stop"}
    assert "expect_column_mean_to_be_between" in {rule.type for rule in rules}


def test_a_schedule_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("ORDERS_SCHEDULE", "now and then")
    with pytest.raises(SpecError, match="not a schedule"):
        load_pipeline(PIPELINES / "orders.yaml")
