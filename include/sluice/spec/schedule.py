"""When a pipeline runs: cron text, a preset of Airflow's, a duration, or by hand."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from ..errors import SpecError, suggest
from .quantities import parse_duration

PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
"""That are short for cron text."""
WITHOUT_INTERVAL = ("@once", "@continuous")
"""That say nothing of a length of time."""


def _parse_schedule(value: object) -> object:
    """Keep cron text and presets as they are; turn `30 minutes` into a timedelta."""
    if not isinstance(value, str) or value.startswith("@") or len(value.split()) >= 5:
        return value
    try:
        return parse_duration(value)
    except ValueError:
        raise ValueError(
            "not a schedule; write cron ('0 6 * * *'), a preset ('@daily'), a duration "
            "('30 minutes') or null"
        ) from None


Schedule = Annotated[
    timedelta | str | None,
    BeforeValidator(_parse_schedule),
    WithJsonSchema({"type": ["string", "null"]}),
]


def check_schedule(schedule: timedelta | str | None, where: str, place: str = "") -> None:
    """Raise SpecError for a schedule that Airflow does not understand, or that never comes: by the
    parser that Airflow asks.

    Args: where: the file. place: the line in it. It costs an import, so a run does not ask.
    """
    at, presets = f" ({place})" if place else "", (*PRESETS, *WITHOUT_INTERVAL)
    if not isinstance(schedule, str) or schedule in presets:
        return
    if schedule.startswith("@"):
        raise SpecError(
            "schedule: no preset of Airflow's",
            where=where,
            value=schedule,
            do=f"{suggest(schedule, presets)}There are {', '.join(presets)}{at}",
        )
    from croniter import CroniterBadDateError, CroniterError, croniter

    try:
        croniter(schedule, datetime.now(UTC)).get_next()
    except CroniterBadDateError as error:
        raise SpecError(
            "schedule: a cron expression whose day never comes",
            where=where,
            value=schedule,
            do="Mend the day or the month: minute, hour, day of the month, month, day of the week"
            f"{at}",
        ) from error
    except (CroniterError, ValueError, KeyError, AttributeError) as error:  # it raises them all
        raise SpecError(
            f"schedule: not a cron expression Airflow understands: {error}",
            where=where,
            value=schedule,
            do="Write '0 6 * * *' (minute, hour, day of the month, month, day of the week), "
            f"@daily, '30 minutes' or null{at}",
        ) from error
