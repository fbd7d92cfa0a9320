"""What every kind of sink answers for itself, so that nobody has to ask which kind it is."""

from typing import ClassVar, Literal, Self

from ..storage.paths import Paths, is_remote
from .model import Needs

OutputMode = Literal["append", "update", "complete"]
"""Of a query that keeps groups: each once when it is closed, those that changed in each batch, or
all of them in each batch."""


class SinkKind(Needs):
    """A kind of sink; what it leaves unsaid is as it is for most."""

    kind: str
    is_target: ClassVar[bool] = False
    """Whether it is the table by which a step remembers its keys."""
    durable: ClassVar[bool] = True
    """Whether what it was given outlives the run, so that what it lacks is remembered."""
    continuous: ClassVar[bool] = False
    """Whether Spark's continuous trigger writes to it."""

    @property
    def place(self) -> str:
        """Where rows go, as reports name it; empty where the kind says it all."""
        return ""

    @property
    def title(self) -> str:
        """Kind and place: `jdbc sales.orders`."""
        return f"{self.kind} {self.place}".rstrip()

    def writes(self, paths: Paths) -> frozenset[str]:
        """The places that it writes to: two steps that share one write in the order of the
        file."""
        return frozenset({f"{self.kind}/{self.place}".rstrip("/")})

    @property
    def adds_rows(self) -> bool:
        """True where a row that comes once more stands beside the one that was there."""
        return False

    @property
    def upsert_keys(self) -> list[str]:
        """Columns by which a row takes the place of the one before; none where it never does."""
        return []

    @property
    def order(self) -> list[tuple[str, bool]]:
        """Columns by which the row of a key is chosen that stays, and whether the greatest comes
        first."""
        return []

    @property
    def written(self) -> list[str]:
        """The columns that are written; empty for all of them."""
        return []

    @property
    def follows_changes(self) -> bool:
        """True where a row that takes the place of another in the target does so here as well."""
        return not self.adds_rows

    @property
    def mirrored_by(self) -> list[str] | None:
        """Of a step with `groups`: the columns that tell where a row stands, so that the sink can
        be told what stands there now, or that nothing does; none where it takes the place of all
        that it had. None for a sink that cannot take back what it was given."""
        return None

    def ranked(self, order: list[str]) -> Self:
        """The sink with the order by which the newest row of a key is told, where it asks for one
        and names none. Args: order: columns, the first of them first; ` desc` behind one of which
        the greatest wins."""
        return self

    @property
    def output_mode(self) -> OutputMode | None:
        """Spark's output mode that it asks of the step's query; None where it takes what the other
        sinks ask for."""
        return None

    @property
    def takes_whole(self) -> bool:
        """True where it can be given the whole result with each batch (output mode `complete`)."""
        return False

    @property
    def layout(self) -> dict[str, list[str]]:
        """Field -> the columns by which it lays out what it writes."""
        return {}

    @property
    def stays_below_root(self) -> bool:
        """True where a run with a root of its own writes to nothing that others read."""
        return False

    @property
    def limits(self) -> list[str]:
        """What a reader of it must know, a sentence each; `sluice validate --explain` prints it."""
        return []


class AnyModeSink(SinkKind):
    """A sink that takes what a query makes in any output mode."""

    mode: OutputMode | None = None
    """Of a transform that aggregates: the groups that are closed (`append`), that changed
    (`update`), or all of them (`complete`) with each batch. By default what the other sinks ask
    for, else `append`."""

    @property
    def output_mode(self) -> OutputMode | None:
        """As written."""
        return self.mode

    @property
    def takes_whole(self) -> bool:
        """What it is given is all that it knows."""
        return True


def is_absolute(path: str) -> bool:
    """True for a path that does not lie below the root."""
    return path.startswith(("/", "file:")) or is_remote(path)
