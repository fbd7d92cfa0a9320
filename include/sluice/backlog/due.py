"""What a run has to do, as the probe found it."""

from dataclasses import dataclass

from .probe import Range, StepBacklog


@dataclass(frozen=True)
class Waiting:
    """What a run has to do: the backlog of each step, or the ranges of a backfill. `asked`: what a
    person asked for, whatever waits."""

    backlog: dict[str, StepBacklog]
    ranges: dict[str, Range]
    asked: bool = False

    @property
    def nothing(self) -> bool:
        """True where no step has anything to do."""
        idle = not any(found.must_run for found in self.backlog.values())
        return not self.asked and idle and all(chosen.is_empty for chosen in self.ranges.values())

    @property
    def bytes(self) -> int | None:
        """About how much waits; None where nobody knows."""
        if self.asked:
            return None
        sizes = [found.weight for found in self.backlog.values()]
        sizes += [chosen.bytes for chosen in self.ranges.values()]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None
