"""Sinks to look at rows while a pipeline is tried out."""

from typing import ClassVar, Literal

from pydantic import Field

from .sink_kind import OutputMode, SinkKind


class TrialSink(SinkKind):
    """What a console and a view in memory have in common: they outlive nothing, and show a query in
    any output mode."""

    mode: OutputMode | None = None
    """Of a transform that aggregates: the groups that are closed (`append`), that changed
    (`update`), or all of them (`complete`) with each batch. By default what the other sinks ask
    for, else `append`."""
    durable: ClassVar[bool] = False

    @property
    def output_mode(self) -> OutputMode | None:
        """As written."""
        return self.mode

    @property
    def takes_whole(self) -> bool:
        """Both show what they are given."""
        return True

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
