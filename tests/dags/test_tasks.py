"""What the probe decides, what the gate lets through, and the pools that keep runs apart."""

from datetime import UTC, datetime

import pytest
import yaml
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException
from sluice.orchestration import tasks
from sluice.orchestration.tasks import describe_saving, judge_report, probe, probe_backlog
from sluice.report.model import BatchReport, Counts, Outcome, RuleResult, RunReport, StepReport
from sluice.report.store import write_report
from sluice.storage import Paths, aws_client

from tests.airflow_service import land_visits, write_pipeline

GOOD = Counts(read=10, entered=10, made=10, written=9, quarantined=1)


class TaskInstance:
    """The part of a task instance the tasks use."""

    def __init__(self):
        self.pushed = {}

    def xcom_push(self, key, value):
        self.pushed[key] = value


class OutletEvents(dict):
    """Accessors by asset name, as Airflow hands them to a task."""

    def __getitem__(self, asset):
        return self.setdefault(asset.name, type("Accessor", (), {"extra": {}})())


def rule(**changes) -> RuleResult:
    """A row-level rule that failed for one of ten rows."""
    found = {
        "name": "amount_not_negative",
        "type": "expect_column_values_to_be_between",
        "level": "row",
        "on_fail": "stop",
        "outcome": Outcome.FAILED,
        "evaluated": 10,
        "unexpected": 1,
    }
    return RuleResult(**found | changes)


def store(counts=GOOD, rules=(), status="done", **changes) -> RunReport:
    """Write the report of run `r1` of the pipeline `visits`."""
    now = datetime.now(UTC)
    step = StepReport(
        name="visits",
        target="t",
        quarantine="q",
        counts=counts,
        batches=[BatchReport(batch_id=0, counts=counts)],
        rules=list(rules),
    )
    report = RunReport(
        pipeline="visits",
        run_id="r1",
        started=now,
        ended=now,
        status=status,
        steps=[step],
        seconds_up=20,
        core_seconds=30,
        **changes,
    )
    write_report(report, Paths.under(None, "visits").reports())
    return report


def judge() -> tuple[dict, dict]:
    """Run the gate; returns what it pushed and the extras of its asset events."""
    ti, events = TaskInstance(), OutletEvents()
    judge_report("visits", "r1", ti, events)
    return ti.pushed, {name: accessor.extra for name, accessor in events.items()}


def test_the_probe_lets_spark_start_when_files_wait(pipelines):
    land_visits(write_pipeline(pipelines, "visits"), 0, range(10))
    ti = TaskInstance()
    assert probe_backlog("visits.yaml", ti) is True
    assert ti.pushed["backlog"]["files"] == 1
    assert (
        ti.pushed["backlog"]["bytes"]
        == (pipelines / "landing" / "visits" / "2026-01-01.json").stat().st_size
    )


def test_the_probe_skips_when_nothing_waits_and_says_what_that_saved(pipelines, caplog):
    write_pipeline(pipelines, "visits")
    store()
    caplog.set_level("INFO")
    ti = TaskInstance()
    assert probe_backlog("visits.yaml", ti) is False
    assert ti.pushed["backlog"]["must_run"] is False
    assert "saved about 20 s and 30 core-seconds" in caplog.text


def test_a_saving_is_not_invented_before_the_first_run(pipelines):
    assert describe_saving("visits") == "No Spark was started."


def test_the_probe_fails_open(pipelines, monkeypatch):
    def break_down(*_):
        raise RuntimeError("the store hiccuped")

    write_pipeline(pipelines, "visits")
    monkeypatch.setattr(tasks, "measure_pipeline", break_down)
    backlog = probe("visits.yaml")
    assert backlog["must_run"] is True
    assert backlog["bytes"] is None
    assert "the store hiccuped" in backlog["reason"]


def test_a_landing_folder_that_does_not_exist_fails_the_probe_without_a_retry(pipelines):
    write_pipeline(pipelines, "visits").rmdir()
    with pytest.raises(AirflowFailException, match="landing"):
        probe_backlog("visits.yaml", TaskInstance())


def test_a_listing_that_found_nothing_is_noted_so_that_the_next_probe_asks_the_queue_alone(
    pipelines, s3
):
    bucket = s3.create_bucket("notified-visits")
    queue = s3.create_queue(bucket)
    aws_client("sqs").purge_queue(QueueUrl=queue)  # S3's test of the configuration
    write_pipeline(pipelines, "visits")
    spec = yaml.safe_load((pipelines / "pipelines" / "visits.yaml").read_text())
    spec["steps"][0]["source"] |= {"path": f"{bucket}/in", "notifications": {"queue": queue}}
    (pipelines / "pipelines" / "visits.yaml").write_text(yaml.safe_dump(spec))
    assert probe("visits.yaml")["must_run"] is False
    with s3.counted() as requests:
        assert probe("visits.yaml")["must_run"] is False
    assert requests == [("POST", "/?AmazonSQS.GetQueueAttributes")]


def test_the_gate_publishes_the_counts(pipelines):
    store()
    pushed, extras = judge()
    line = "10 read = 9 written + 1 quarantined + 0 duplicate + 0 late + 0 filtered"
    assert pushed["quality"]["line"] == line
    assert extras["sluice.visits.visits"]["counts"]["written"] == 9
    assert extras["sluice.visits.visits"]["run_id"] == "r1"


def test_the_asset_of_an_event_is_an_outlet_of_the_gate(pipelines):
    from sluice.orchestration.dag import load_dags

    write_pipeline(pipelines, "visits")
    store()
    _, extras = judge()
    outlets = load_dags()[0]["visits"].get_task("gate").outlets
    assert set(extras) == {asset.name for asset in outlets if isinstance(asset, Asset)}


def test_a_failed_warning_lets_downstream_run(pipelines):
    store(rules=[rule(on_fail="warn")])
    pushed, extras = judge()
    assert pushed["quality"]["failed_rules"] == ["amount_not_negative"]
    assert extras


@pytest.mark.parametrize(
    ("report", "named"),
    [
        (
            {"rules": [rule()], "status": "stopped by a rule"},
            "`amount_not_negative` failed .1 of 10 rows.",
        ),
        (
            {"rules": [rule(on_fail="warn", outcome=Outcome.ERROR, message="no such column")]},
            "`amount_not_negative` could not be evaluated .no such column.",
        ),
        ({"counts": GOOD.model_copy(update={"written": 8})}, "does not balance"),
        ({"status": "failed", "error": "the checkpoint is damaged"}, "the checkpoint is damaged"),
    ],
)
def test_the_gate_blocks_and_names_the_reason(pipelines, report, named):
    store(**report)
    with pytest.raises(AirflowFailException, match=named):
        judge()


def test_a_value_of_a_row_never_reaches_xcom_or_an_asset(pipelines):
    store(rules=[rule(on_fail="warn", samples=["alice@example.org"])])
    assert "alice" not in str(judge())


def test_a_missing_report_fails_the_gate_and_says_what_to_set(pipelines):
    with pytest.raises(AirflowFailException, match="SLUICE_ROOT"):
        judge()


def test_pools_are_made_once_with_one_slot_and_a_broken_pipeline_gets_none(
    pipelines, metadata_database
):
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session
    from sluice.orchestration.pools import create_pools

    write_pipeline(pipelines, "visits")
    (pipelines / "pipelines" / "broken.yaml").write_text("name: broken\n")
    assert create_pools() == create_pools() == ["sluice_visits"]
    with create_session() as session:
        assert [
            (p.pool, p.slots) for p in session.query(Pool).filter(Pool.pool.like("sluice_%"))
        ] == [("sluice_visits", 1)]
