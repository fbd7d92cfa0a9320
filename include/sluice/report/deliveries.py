"""What further sinks got in a run, and what they lack after it."""

from datetime import datetime

from .counts import Record


class Delivered(Record):
    """A batch that a further sink got in this run. `missing`: rows of it that the target did not
    hold any more. `removed`: keys (of files partitions) of which the sink kept nothing, because
    the target holds none of their rows any more."""

    sink: str
    key: str
    rows: int
    missing: int = 0
    removed: int = 0

    @property
    def identity(self) -> str:
        """What no other delivery is called."""
        return f"{self.sink} {self.key}"


class Undelivered(Record):
    """What a further sink lacks. `said`: why it did not take the last of it. `given_up`: rows that
    a person decided it shall not get."""

    sink: str
    batches: int = 0
    rows: int = 0
    since: datetime | None = None
    said: str = ""
    needs_person: bool = False
    given_up: int = 0
