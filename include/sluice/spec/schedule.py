"""When a pipeline runs: cron text, a preset of Airflow's, a duration, after other pipelines, or by
hand."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Tag,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from ..errors import SpecError, suggest
from .lines import At
from .model import FieldError, Spec
from .quantities import format_duration, parse_duration

PRESETS = ("@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
"""That are short for cron text."""
WITHOUT_INTERVAL = ("@once", "@continuous")
"""That say nothing of a length of time."""

_CLOCK = "cron ('0 6 * * *'), a preset ('@daily'), a duration ('30 minutes')"
_STEP = re.compile(r"[a-z][a-z0-9_]{0,62}\.[a-z][a-z0-9_]{0,62}")


def _parse_clock(value: object, more: str = "") -> object:
    """Keep cron text and presets as they are; turn `30 minutes` into a timedelta.

    Args: more: what else may stand there, for the error.
    """
    if isinstance(value, str) and (value.startswith("@") or len(value.split()) >= 5):
        return value
    try:
        return parse_duration(value)
    except ValueError:
        raise ValueError(f"not a schedule; write {_CLOCK}{more}") from None


def _parse_schedule(value: object) -> object:
    return _parse_clock(value, ", {after: [orders.orders]} or null")


Clock = Annotated[
    timedelta | str, BeforeValidator(_parse_clock), WithJsonSchema({"type": "string"})
]
"""Cron text, a preset or a duration."""


def _check_step(name: object) -> object:
    """A step of another pipeline as `pipeline.step`."""
    if isinstance(name, str) and _STEP.fullmatch(name):
        return name
    inner = name.removeprefix("sluice.") if isinstance(name, str) else ""
    do = f"Did you mean {inner!r}?" if _STEP.fullmatch(inner) else ""
    raise FieldError("not a step of a pipeline; write pipeline.step: orders.orders", do=do)


def _check_steps(names: list[str]) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names:
        raise FieldError("nothing to run after", do="Name steps: [orders.orders], or leave it out")
    if twice:
        raise ValueError(f"names {', '.join(twice)} twice; once is enough")
    return names


_Steps = Annotated[
    list[Annotated[str, BeforeValidator(_check_step)]],
    AfterValidator(_check_steps),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "string", "pattern": f"^{_STEP.pattern}$"},
            "minItems": 1,
            "uniqueItems": True,
        }
    ),
]


class AnyOf(Spec):
    """Steps, one of which is enough."""

    any: _Steps
    """`pipeline.step` of each."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_all(cls, value: object) -> object:
        if isinstance(value, dict) and "all" in value:
            raise FieldError(
                "`all` is what a list means, without a word",
                do="Write `after: [orders.orders, returns.returns]`, or `{any: [...]}` for one",
            )
        return value


class After(Spec):
    """A schedule by what other pipelines write."""

    after: Annotated[
        Annotated[_Steps, Tag("list")] | Annotated[AnyOf, Tag("mapping")],
        Discriminator(lambda value: "mapping" if isinstance(value, dict | AnyOf) else "list"),
    ]
    """Runs once each of these steps has written since the last such run, `[orders.orders,
    returns.returns]`; or once one of them has, `{any: [...]}`."""
    or_at: Clock | None = None
    """Runs at these times as well: cron text, a preset or a duration."""

    @field_validator("or_at")
    @classmethod
    def _check_interval(cls, clock: timedelta | str | None) -> timedelta | str | None:
        if clock in WITHOUT_INTERVAL:
            raise ValueError(f"{clock} says no time; write {_CLOCK}, or leave it out")
        return clock

    @property
    def steps(self) -> list[str]:
        """`pipeline.step` of each step it names."""
        return self.after.any if isinstance(self.after, AnyOf) else self.after

    @property
    def places(self) -> dict[str, At]:
        """Each step, and the fields of a pipeline that lead to it."""
        at: At = ("schedule", "after", *(("any",) if isinstance(self.after, AnyOf) else ()))
        return {step: (*at, number) for number, step in enumerate(self.steps)}

    @property
    def needs_all(self) -> bool:
        """Whether each of the steps must have written, and not only one."""
        return isinstance(self.after, list)


Schedule = (
    Annotated[
        Annotated[
            timedelta | str,
            BeforeValidator(_parse_schedule),
            WithJsonSchema({"type": "string"}),
            Tag("text"),
        ]
        | Annotated[After, Tag("mapping")],
        Discriminator(lambda value: "mapping" if isinstance(value, dict | After) else "text"),
    ]
    | None
)


def clock_of(schedule: Schedule) -> timedelta | str | None:
    """What the clock says of a schedule, beside what it waits for; None for nothing."""
    return schedule.or_at if isinstance(schedule, After) else schedule


def describe_schedule(schedule: Schedule) -> str:
    """`every 30 minutes`, `after orders.orders or at 0 6 * * *`, `by hand`."""
    clock = clock_of(schedule)
    told = f"every {format_duration(clock)}" if isinstance(clock, timedelta) else clock
    if not isinstance(schedule, After):
        return told or "by hand"
    waits = (" and " if schedule.needs_all else " or ").join(schedule.steps)
    at = "" if isinstance(clock, timedelta) else "at "
    return f"after {waits}{f', or {at}{told}' if told else ''}"


def check_schedule(
    schedule: Schedule, where: str, place: str = "", field: str = "schedule"
) -> None:
    """Raise SpecError for a schedule that Airflow does not understand, or that never comes: by the
    parser that Airflow asks.

    Args: where: the file. place: the line in it. field: of the file. It costs an import, so a run
    does not ask.
    """
    waits, clock = isinstance(schedule, After), clock_of(schedule)
    presets = PRESETS if waits else (*PRESETS, *WITHOUT_INTERVAL)
    field, at = f"{field}.or_at" if waits else field, f" ({place})" if place else ""
    if not isinstance(clock, str) or clock in presets:
        return
    if clock.startswith("@"):
        raise SpecError(
            f"{field}: no preset of Airflow's",
            where=where,
            value=clock,
            do=f"{suggest(clock, presets)}There are {', '.join(presets)}{at}",
        )
    from croniter import CroniterBadDateError, CroniterError, croniter

    try:
        croniter(clock, datetime.now(UTC)).get_next()
    except CroniterBadDateError as error:
        raise SpecError(
            f"{field}: a cron expression whose day never comes",
            where=where,
            value=clock,
            do="Mend the day or the month: minute, hour, day of the month, month, day of the week"
            f"{at}",
        ) from error
    except (CroniterError, ValueError, KeyError, AttributeError) as error:  # it raises them all
        raise SpecError(
            f"{field}: not a cron expression Airflow understands: {error}",
            where=where,
            value=clock,
            do="Write '0 6 * * *' (minute, hour, day of the month, month, day of the week), "
            f"@daily, '30 minutes' or null{at}",
        ) from error
