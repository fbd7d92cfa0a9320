"""A pipeline that runs after others: the events that gates publish start its runs."""

from datetime import UTC, datetime, timedelta

import pytest
from airflow.serialization.serialized_objects import DagSerialization
from sluice.orchestration.assets import step_asset
from sluice.orchestration.dag import load_dags
from sluice.storage import PROJECT

from tests.airflow_service import write_pipeline


def add(folder, name: str, schedule: str = "null") -> None:
    """Write a pipeline `name` with a step `visits`, and its schedule."""
    write_pipeline(folder, name)
    file = folder / "pipelines" / f"{name}.yaml"
    file.write_text(file.read_text().replace("schedule: null", f"schedule: {schedule}"))


def serialized(dag):
    """The DAG as the scheduler has it."""
    return DagSerialization.from_dict(DagSerialization.to_dict(dag))


class Scheduler:
    """The part of Airflow's scheduler that creates runs, over the tests' own metadata."""

    def __init__(self) -> None:
        from airflow.jobs.job import Job
        from airflow.jobs.scheduler_job_runner import SchedulerJobRunner

        self.runner = SchedulerJobRunner(Job(), executors=[])

    def learn(self) -> None:
        """Store the DAGs of the pipelines folder as the DAG processor does, and unpause them."""
        from airflow.dag_processing.bundles.manager import DagBundlesManager
        from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

        DagBundlesManager().sync_bundles_to_db()
        bag = DagBag(str(PROJECT / "dags"), bundle_path=PROJECT / "dags", bundle_name="dags-folder")
        sync_bag_to_db(bag, "dags-folder", None)
        self.dag_ids = set(bag.dags)
        self.pause(*self.dag_ids, paused=False)

    def pause(self, *dag_ids: str, paused: bool = True) -> None:
        """Pause DAGs, or unpause them."""
        from airflow.models.dag import DagModel
        from airflow.utils.session import create_session

        with create_session() as session:
            for model in session.query(DagModel).filter(DagModel.dag_id.in_(dag_ids)):
                model.is_paused = paused

    def publish(self, dag_id: str) -> None:
        """Register the events of a DAG's gate, as Airflow does when the task has succeeded."""
        from airflow.assets.manager import AssetManager
        from airflow.models.asset import AssetModel, TaskOutletAssetReference
        from airflow.utils.session import create_session

        with create_session() as session:
            assets = (
                session.query(AssetModel)
                .join(TaskOutletAssetReference)
                .filter_by(dag_id=dag_id, task_id="gate")
            )
            for asset in assets.all():
                AssetManager().register_asset_change(asset=asset, session=session)

    def create_runs(self) -> list[tuple[str, str]]:
        """One look of the scheduler: (DAG, type of run) of the runs it created; each ends well."""
        from airflow.models.dagrun import DagRun
        from airflow.utils.session import create_session
        from airflow.utils.sqlalchemy import prohibit_commit
        from airflow.utils.state import DagRunState

        with create_session() as session, prohibit_commit(session) as guard:
            self.runner._create_dagruns_for_dags(guard, session)
        with create_session() as session:
            queued = session.query(DagRun).filter(
                DagRun.dag_id.in_(self.dag_ids), DagRun.state == DagRunState.QUEUED
            )
            runs = [(run.dag_id, str(run.run_type)) for run in queued.all()]
            for run in queued.all():
                run.state = DagRunState.SUCCESS
                # what the scheduler notes as a run ends: one may be active
                run.dag_model.exceeds_max_non_backfill = False
        return sorted(runs)


def test_all_waits_for_each_and_any_for_one_and_a_clock_starts_runs_as_well(
    pipelines, metadata_database
):
    for name in ("east", "west"):
        add(pipelines, name)
    add(pipelines, "gold_all", "{after: [east.visits, west.visits]}")
    add(pipelines, "gold_any", "{after: {any: [east.visits, west.visits]}}")
    add(pipelines, "gold_daily", "{after: [east.visits], or_at: '0 6 * * *'}")
    scheduler = Scheduler()
    scheduler.learn()
    woken = "asset_triggered"
    assert scheduler.create_runs() == [("gold_daily", "scheduled")]
    assert scheduler.create_runs() == []
    scheduler.publish("east")
    assert scheduler.create_runs() == [("gold_any", woken), ("gold_daily", woken)]
    assert scheduler.create_runs() == []
    scheduler.publish("east")  # once more, and still nothing of west
    assert scheduler.create_runs() == [("gold_any", woken), ("gold_daily", woken)]
    scheduler.publish("west_backfill")
    assert scheduler.create_runs() == [("gold_all", woken), ("gold_any", woken)]
    scheduler.publish("west")  # since then only this one
    assert scheduler.create_runs() == [("gold_any", woken)]


def test_events_that_come_together_are_one_run_and_a_paused_dag_gets_none(
    pipelines, metadata_database
):
    for name in ("spring", "autumn"):
        add(pipelines, name)
    add(pipelines, "gold_year", "{after: {any: [spring.visits, autumn.visits]}}")
    scheduler = Scheduler()
    scheduler.learn()
    for name in ("spring", "autumn", "spring"):
        scheduler.publish(name)
    assert scheduler.create_runs() == [("gold_year", "asset_triggered")]
    scheduler.pause("gold_year")
    scheduler.publish("spring")
    scheduler.pause("gold_year", paused=False)
    assert scheduler.create_runs() == []
    scheduler.publish("autumn")
    assert scheduler.create_runs() == [("gold_year", "asset_triggered")]


@pytest.mark.parametrize(
    ("schedule", "kind", "summary", "length"),
    [
        ("{after: [east.visits]}", "AssetTriggeredTimetable", "Asset", timedelta(days=1)),
        (
            "{after: {any: [east.visits]}, or_at: '@hourly'}",
            "AssetOrTimeSchedule",
            "Asset or 0 * * * *",
            timedelta(hours=1),
        ),
        (
            "{after: [east.visits], or_at: 6 hours}",
            "AssetOrTimeSchedule",
            "Asset or 6:00:00",
            timedelta(hours=6),
        ),
    ],
)
def test_its_dag_waits_for_what_the_gate_publishes_and_its_backfill_has_intervals(
    pipelines, schedule, kind, summary, length
):
    add(pipelines, "east")
    add(pipelines, "gold", schedule)
    dags, errors = load_dags()
    assert errors == []
    gold, backfill = serialized(dags["gold"]), serialized(dags["gold_backfill"])
    assert (type(gold.timetable).__name__, gold.timetable.summary) == (kind, summary)
    awaited = [asset.name for _, asset in gold.timetable.asset_condition.iter_assets()]
    published = serialized(dags["east"]).get_task("gate").outlets
    assert awaited == [asset.name for asset in published] == ["sluice.east.visits"]
    assert {"asset_triggered", "scheduled", "manual"} <= set(gold.allowed_run_types)
    first = datetime(2026, 1, 2, tzinfo=UTC)
    info = next(iter(backfill.iter_dagrun_infos_between(first, first + timedelta(days=3))))
    assert info.data_interval.end - info.data_interval.start == length
    assert not backfill.timetable.can_be_scheduled


def test_a_fallback_that_airflow_does_not_understand_names_the_field(pipelines):
    add(pipelines, "gold", "{after: [east.visits], or_at: '61 * * * *'}")
    dags, errors = load_dags()
    assert dags == {}
    assert "gold.yaml: schedule.or_at: not a cron expression" in str(errors[0])


def test_the_asset_of_a_step_is_named_after_pipeline_and_step():
    asset = step_asset("orders", "lines")
    assert (asset.name, asset.uri, asset.group) == ("sluice.orders.lines",) * 2 + ("sluice",)
