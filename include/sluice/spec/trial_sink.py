"""Sinks to look at rows while a pipeline is tried out."""

from typing import ClassVar, Literal

from pydantic import Field

from .sink_kind import AnyModeSink


class TrialSink(AnyModeSink):
    """What a console and a view in memory have in common: they outlive nothing."""

    durable: ClassVar[bool] = False

    @property
    def stays_below_root(self) -> bool:
        """Nothing is written."""
        return True


class ConsoleSink(TrialSink):
    """The first rows of each batch, printed."""

    kind: Literal["console"]
    rows: int = Field(default=20, ge=1)
    continuous: ClassVar[bool] = True


class MemorySink(TrialSink):
    """A temporary view of the Spark session, for trials: it ends with the run. Under `complete` it
    holds the newest batch, else all of them."""

    kind: Literal["memory"]
    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")

    @property
    def place(self) -> str:
        """The view."""
        return self.name
