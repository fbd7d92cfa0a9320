"""What each further sink of a step has got, batch by batch.

Kept apart from the checkpoint and from the target's log, so that a sink's place hangs neither on
the one's fate nor on how long the other lasts.
"""

from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ..errors import PreflightError, SpecError
from ..storage import open_path, replace_file


class _Note(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Due(_Note):
    """A batch that a sink lacks. `rows`: that the target took in. `said`: why the sink did not take
    it, empty before it was asked. `needs_person`: trying again alone cannot help. `again`: a person
    asked for it, so that the sink looks into what it has, and not into what it noted. `mirrored`:
    the sink becomes what the target is, so that a batch of no rows may take some from it. `whole`:
    all that the target holds, in the place of all that the sink has."""

    key: str
    rows: int
    since: datetime
    said: str = ""
    needs_person: bool = False
    again: bool = False
    mirrored: bool = False
    whole: bool = False


class GivenUp(_Note):
    """A batch that a person decided a sink shall not get."""

    key: str
    rows: int
    reason: str
    at: datetime


class Sent(_Note):
    """A batch that a sink has got. `missing`: rows that the target took in and does not hold any
    more. `removed`: keys or partitions of which it took the last row away. `run_id`: the run whose
    report has to tell of it. `home`: the checkpoint generation that run works on."""

    key: str
    rows: int
    missing: int = 0
    removed: int = 0
    run_id: str
    home: str


class Position(_Note):
    """How far a sink follows its target.

    `seen`: checkpoint generation (`pipeline/step/generation`) -> its newest batch that is taken
    account of: the sink has it, or it is due, or given up. `before`: those of them that the target
    had before the sink followed it. `sent`: what no report tells of yet. `got`: rows it ever got.
    `places`: of a sink that becomes what the target is, the columns by which it replaces rows.
    """

    sink: str
    seen: dict[str, int] = {}
    before: dict[str, int] = {}
    due: list[Due] = []
    given_up: list[GivenUp] = []
    sent: list[Sent] = []
    got: int = 0
    places: list[str] | None = None
    schema_version: int = 1

    @property
    def followed(self) -> dict[str, range]:
        """The batches of each checkpoint generation since the sink follows the target."""
        starts = {home: self.before.get(home, -1) + 1 for home in self.seen}
        return {home: range(starts[home], newest + 1) for home, newest in self.seen.items()}

    def knows(self, key: str) -> bool:
        """Whether a batch is taken account of."""
        generation, number = split_key(key)
        return self.seen.get(generation, -1) >= number

    def owing(self, batches: list[Due]) -> "Position":
        """The position with those batches due that it does not know yet."""
        new = [due for due in batches if not self.knows(due.key)]
        seen = dict(self.seen)
        for due in new:
            generation, number = split_key(due.key)
            seen[generation] = max(seen.get(generation, -1), number)
        lacking = [*self.due, *(due for due in new if due.rows or due.mirrored)]
        return self.model_copy(update={"seen": seen, "due": lacking})

    def demanding(self, batches: list[Due]) -> "Position":
        """The position with those batches due, whatever it knows of them."""
        wanted = {due.key for due in batches}
        seen = self.owing(batches).seen
        due = sorted([*(d for d in self.due if d.key not in wanted), *batches], key=_order)
        left = [given_up for given_up in self.given_up if given_up.key not in wanted]
        changed = {"seen": seen, "due": due, "given_up": left, "before": self._asked(wanted)}
        return self.model_copy(update=changed)

    def starting_over(self, whole: Due) -> "Position":
        """The position with all that the target holds due, in the place of every batch of it."""
        changed = {"due": [whole], "given_up": [], "before": {}}
        return self.owing([whole]).model_copy(update=changed)

    def _asked(self, wanted: set[str]) -> dict[str, int]:
        """Of the batches from before the sink followed, those that stay unasked for."""
        before = dict(self.before)
        for home, number in map(split_key, wanted):
            if home in before:
                before[home] = min(before[home], number - 1)
        return before

    def settled(self, sent: Sent) -> "Position":
        """The position after a sink got a batch."""
        tells = sent.rows or sent.missing or sent.removed
        told = [*self.sent, sent] if tells else self.sent
        got = self.got + sent.rows
        return self.model_copy(update={"due": self._without(sent.key), "sent": told, "got": got})

    def refused(self, due: Due) -> "Position":
        """The position after a sink did not take a batch."""
        lacking = [due if other.key == due.key else other for other in self.due]
        return self.model_copy(update={"due": lacking})

    def without(self, key: str, reason: str) -> "Position":
        """The position after a person gave up a batch. Raises SpecError for one that is not due."""
        due = next((due for due in self.due if due.key == key), None)
        if due is None:
            lacking = ", ".join(due.key for due in self.due) or "none"
            raise SpecError(
                "the sink does not lack this batch",
                where=self.sink,
                value=key,
                do=f"It lacks: {lacking}",
            )
        gone = GivenUp(key=key, rows=due.rows, reason=reason, at=datetime.now(UTC))
        left = [*self.given_up, gone]
        return self.model_copy(update={"due": self._without(key), "given_up": left})

    def _without(self, key: str) -> list[Due]:
        return [due for due in self.due if due.key != key]


def _order(due: Due) -> tuple[str, int]:
    return split_key(due.key)


def split_key(key: str) -> tuple[str, int]:
    """`pipeline/step/generation/batch` -> its generation and number."""
    generation, _, number = key.rpartition("/")
    return generation, int(number)


def read_position(path: str) -> Position | None:
    """A sink's position; None where it has none yet.

    Raises PreflightError for a file that is damaged, or that a newer version wrote.
    """
    file = open_path(path)
    if not file.exists():
        return None
    try:
        return Position.model_validate_json(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise PreflightError(
            "what the sink has got cannot be read: the file is damaged, or a newer version "
            f"wrote it ({str(error).splitlines()[0]})",
            where=path,
            do="Restore it, or run the newer version. Where neither is there: move it away, then "
            "`sluice deliver NAME --all` sends what the sink does not know that it has",
        ) from None


def followed_sinks(folder: str) -> list[str]:
    """The titles of the sinks that have a position in a folder: those of a step, whether they are
    in its file today or were taken out. Raises PreflightError for one that cannot be read."""
    files = [file for file in _list(folder) if file.suffix == ".json"]
    found = [read_position(str(file)) for file in files]
    return [position.sink for position in found if position is not None]


def find_namesakes(folder: str, file: str) -> dict[tuple[str, str], str]:
    """The positions of a sink under whichever pipeline and step: these two -> its file.

    Args: folder: of all positions. file: the name that a position of the sink has.
    """
    places = [step / file for pipeline in _list(folder) for step in _list(pipeline)]
    return {
        (place.parent.parent.name, place.parent.name): str(place)
        for place in places
        if place.exists()
    }


def _list(folder: str | Path) -> list[Path]:
    there = open_path(folder)
    return sorted(there.iterdir()) if there.is_dir() else []


def write_position(path: str, position: Position) -> None:
    """Put a position in place of the one before. Raises OSError."""
    file = open_path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_file(file, position.model_dump_json())
