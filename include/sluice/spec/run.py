"""RunRequest: what Airflow, the CLI or a test asks one run to do."""

import re
from datetime import UTC, datetime
from typing import Literal
from uuid import uuid4

from pydantic import Field, field_validator, model_validator

from .model import Spec


class Window(Spec):
    """A half-open range of event time, UTC: `start <= t < end`."""

    start: datetime
    end: datetime

    @field_validator("start", "end")
    @classmethod
    def _in_utc(cls, value: datetime) -> datetime:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)

    @model_validator(mode="after")
    def _check_order(self) -> "Window":
        if self.start >= self.end:
            raise ValueError(f"the range is empty: {self.start} is not before {self.end}")
        return self

    @property
    def literals(self) -> tuple[str, str]:
        """Start and end as SQL has them."""
        start, end = (
            f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}+00:00'" for moment in (self.start, self.end)
        )
        return start, end


def clean_run_id(run_id: str) -> str:
    """A run id that is safe as a file name: Airflow's `scheduled__2026-01-01T00:00:00+00:00` keeps
    its meaning."""
    return re.sub(r"[^A-Za-z0-9_.=-]", "_", run_id)[:200]


class Refill(Spec):
    """What `sluice deliver` sends: what the sinks are known to lack, or more.

    `step`, `sink`: of the one that is meant; by default every one. `everything`: all that the
    target holds and the sink does not have. `since`: of that what the target took in from then on.
    `keys`: batches by their keys, also those that were given up.
    """

    step: str | None = None
    sink: str | None = None
    everything: bool = False
    since: datetime | None = None
    keys: list[str] = []


class Verify(Spec):
    """What `sluice verify` looks at: `step`, by default each that can be; `share` of the groups of
    a step with `groups`, chosen by a hash of them."""

    step: str | None = None
    share: float = Field(default=1.0, gt=0, le=1)


class Redo(Spec):
    """What `sluice redo` computes again: the groups of a step that lie in a range of time."""

    step: str
    window: Window


class RunRequest(Spec):
    """One run: which pipeline, under which id, over which window, where things live."""

    pipeline: str
    """Path of the pipeline's YAML."""
    run_id: str = Field(
        default_factory=lambda: f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:6]}"
    )
    window: Window | None = None
    """None drains what is new; a window makes the run a backfill with a checkpoint of its own."""
    write: Literal["merge", "replace"] = "merge"
    """Backfills only: insert what is missing, or replace the window atomically."""
    root: str | None = None
    master: str | None = None
    dev_seconds: float | None = Field(default=None, gt=0)
    """Makes the run a trial in a root of its own: each step reads from its start, for at most this
    many seconds."""
    refill: Refill | None = None
    """Makes the run one that reads no source, and only sends further sinks what they lack."""
    verify: Verify | None = None
    """Makes the run one that changes no table, and compares them with what their inputs give."""
    redo: Redo | None = None
    """Makes the run one that computes groups of a step again, from what they were computed from."""
    backlog_bytes: int | None = None
    """What the probe saw; chooses the JVM profile."""

    parents: list[tuple[int, float]] = []
    """Process id and start (`checkpoint.start_of`) of those who asked for the run, on this machine:
    it stops when one is gone."""

    @model_validator(mode="after")
    def _check_trial(self) -> "RunRequest":
        asked = (self.dev_seconds, self.window, self.refill, self.verify, self.redo)
        if sum(kind is not None for kind in asked) > 1:
            raise ValueError(
                "a run is a trial, a backfill, a delivery, a verification or a redo, not two of "
                "them"
            )
        return self

    @property
    def backfill(self) -> str | None:
        """The name of a backfill's own checkpoint; None for a run that drains what is new."""
        return clean_run_id(self.run_id) if self.window is not None else None
