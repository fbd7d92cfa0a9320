"""Sinks to look at rows while a pipeline is tried out."""

from typing import ClassVar, Literal

from pydantic import Field

from .sink_kind import SinkKind


class ConsoleSink(SinkKind):
    """The first rows of each batch, printed."""

    kind: Literal["console"]
    rows: int = Field(default=20, ge=1)
    durable: ClassVar[bool] = False
    continuous: ClassVar[bool] = True

    @property
    def stays_below_root(self) -> bool:
        """Nothing is written."""
        return True


class MemorySink(SinkKind):
    """A temporary view of the Spark session, for trials: it ends with the run."""

    kind: Literal["memory"]
    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    durable: ClassVar[bool] = False

    @property
    def place(self) -> str:
        """The view."""
        return self.name

    @property
    def stays_below_root(self) -> bool:
        """Nothing is written."""
        return True
