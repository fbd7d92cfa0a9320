"""What one run is asked to do."""

from datetime import UTC, datetime

import pytest
from pydantic import ValidationError
from sluice.spec import RunRequest, Window, clean_run_id


def test_a_window_without_a_zone_is_utc():
    assert Window(start=datetime(2026, 1, 1), end=datetime(2026, 1, 2)).start == datetime(
        2026, 1, 1, tzinfo=UTC
    )


def test_a_window_in_another_zone_is_turned_into_utc():
    assert Window(start="2026-01-01T00:00:00+02:00", end="2026-01-02T00:00:00Z").start == datetime(
        2025, 12, 31, 22, tzinfo=UTC
    )


@pytest.mark.parametrize("end", ["2026-01-01T00:00:00Z", "2025-12-31T00:00:00Z"])
def test_an_empty_window_is_refused(end):
    with pytest.raises(ValidationError, match="the range is empty"):
        Window(start="2026-01-01T00:00:00Z", end=end)


def test_a_request_survives_the_way_through_json():
    request = RunRequest(
        pipeline="orders.yaml", window={"start": "2026-01-01", "end": "2026-01-02"}, write="replace"
    )
    assert RunRequest.model_validate_json(request.model_dump_json()) == request


def test_two_requests_have_two_run_ids():
    assert RunRequest(pipeline="a").run_id != RunRequest(pipeline="a").run_id


def test_a_run_id_of_airflow_becomes_a_safe_file_name():
    assert (
        clean_run_id("scheduled__2026-01-01T00:00:00+00:00")
        == "scheduled__2026-01-01T00_00_00_00_00"
    )
    assert "/" not in clean_run_id("../../etc/passwd")
