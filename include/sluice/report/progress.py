"""How far a run is, while it runs."""

from collections.abc import Callable
from dataclasses import dataclass

from .model import BatchReport


@dataclass(frozen=True)
class Advance:
    """How far a step is.

    `done`, `total`: of what waits, in the unit of its source, with the part that is done of the
    batch on its way; a `total` of 0 is not known. `rows`: records read so far. `batch`: the one
    that has just ended.
    """

    step: str
    done: float
    total: int
    rows: int = 0
    batch: BatchReport | None = None

    @property
    def percent(self) -> float:
        """Of what waits."""
        return 100 * self.done / self.total if self.total else 100.0


@dataclass(frozen=True)
class Progress:
    """Who is told, by threads of several steps where they run at once. `each_second`: not only as
    batches end, which costs a question to Spark."""

    tell: Callable[[Advance], None]
    each_second: bool = False


UNWATCHED = Progress(lambda _: None)
