"""When DAGs run: a pipeline's schedule as a timetable with data intervals or as assets to wait for,
and its twin that only backfills use.
"""

from datetime import timedelta
from typing import Any

from airflow.sdk import AssetOrTimeSchedule
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction
from airflow.timetables.interval import (
    CronDataIntervalTimetable,
    DeltaDataIntervalTimetable,
    _DataIntervalTimetable,
)

from ..spec import After, Schedule, check_schedule, clock_of
from ..spec.schedule import WITHOUT_INTERVAL
from .assets import awaited_assets

DAILY = "0 0 * * *"


class _OnlyBackfilled(_DataIntervalTimetable):
    """Intervals that exist for backfills and never start a run by themselves.

    A DAG without a schedule cannot be backfilled; one with a schedule of its own would run by it,
    or be found due and refused in every loop.
    """

    can_be_scheduled = False

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The next interval of a backfill, which asks with `catchup`; none for the scheduler, whose
        DAGs have `catchup=False`."""
        if not restriction.catchup:
            return None
        return super().next_dagrun_info(
            last_automated_data_interval=last_automated_data_interval, restriction=restriction
        )

    @property
    def summary(self) -> str:
        """What the DAG list shows as schedule."""
        return f"backfills by {super().summary}"


class BackfillCronTimetable(_OnlyBackfilled, CronDataIntervalTimetable):
    """Intervals of a cron schedule, for backfills."""


class BackfillDeltaTimetable(_OnlyBackfilled, DeltaDataIntervalTimetable):
    """Intervals of a fixed length, for backfills."""


def scheduled_timetable(schedule: Schedule, where: str, field: str = "schedule") -> object:
    """What `DAG(schedule=...)` takes; cron text gets data intervals (Airflow's own default gives
    them length zero). Args: field: of the file. Raises SpecError."""
    check_schedule(schedule, where, field=field)
    timetable = _follow_clock(clock_of(schedule))
    if not isinstance(schedule, After):
        return timetable
    assets = awaited_assets(schedule)
    return assets if timetable is None else AssetOrTimeSchedule(assets=assets, timetable=timetable)


def _follow_clock(clock: timedelta | str | None) -> Any:
    if isinstance(clock, timedelta):
        return DeltaDataIntervalTimetable(clock)
    if clock is None or clock in WITHOUT_INTERVAL:
        return clock
    return CronDataIntervalTimetable(clock, "UTC")


def backfill_timetable(schedule: Schedule, where: str) -> object:
    """The same intervals for backfills; daily where the schedule has none. Raises SpecError."""
    check_schedule(schedule, where)
    clock = clock_of(schedule)
    if isinstance(clock, timedelta):
        return BackfillDeltaTimetable(clock)
    if clock is None or clock in WITHOUT_INTERVAL:
        return BackfillCronTimetable(DAILY, "UTC")
    return BackfillCronTimetable(clock, "UTC")
