"""What a pipeline's tables, its sink and its reports must say, whatever an operator does: in plain
Python, without Spark.

A kill leaves several possibilities: some of the waiting files are judged and the others are not. So
an oracle holds all worlds that may be the true one, and what is observed rules out the others.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

Row = tuple[str, int]
"""An order's id, and the act by which it came into the table."""


@dataclass(frozen=True)
class Fates:
    """Of all records that were read."""

    read: int = 0
    written: int = 0
    quarantined: int = 0
    duplicate: int = 0

    def __add__(self, other: "Fates") -> "Fates":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Fates(*(a + b for a, b in pairs))


@dataclass(frozen=True)
class World:
    """One possible state. `pending`: files that no finished batch has judged. `told`: what reports
    say; `untold`: file by file, of finished batches that no report tells yet. `owed`: rows that the
    sink lacks."""

    pending: tuple[int, ...] = ()
    target: frozenset[Row] = frozenset()
    quarantine: frozenset[tuple[str, str]] = frozenset()
    told: Fates = Fates()
    untold: tuple[Fates, ...] = ()
    sink: tuple[str, ...] = ()
    owed: tuple[Row, ...] = ()

    @property
    def ids(self) -> Counter:
        return Counter(name for name, _ in self.target)

    def judge(self, lines: Iterable[str], limit: float, act: int) -> "World":
        """The world after a batch of these lines."""
        target, quarantine = dict(self.target), dict(self.quarantine)
        new, fates = [], Counter()
        for line in lines:
            reason = find_reason(line, limit)
            fates["read"] += 1
            if reason is None and (name := json.loads(line)["order_id"]) not in target:
                target[name] = act
                new.append((name, act))
                fates["written"] += 1
            elif reason is not None and line not in quarantine:
                quarantine[line] = reason
                fates["quarantined"] += 1
            else:
                fates["duplicate"] += 1
        return replace(
            self,
            target=frozenset(target.items()),
            quarantine=frozenset(quarantine.items()),
            untold=(*self.untold, Fates(**fates)),
            owed=(*self.owed, *new),
        )

    def tell(self, files: int | None = None) -> "World":
        """A report was stored, of some files first or of all."""
        told, left = self.untold[:files], self.untold[len(self.untold[:files]) :]
        return replace(self, told=sum(told, self.told), untold=left)

    def without(self, name: str) -> "World":
        """Somebody deleted an order from the target."""
        return replace(self, target=frozenset(row for row in self.target if row[0] != name))

    def with_rows(self, rows: Iterable[Row]) -> "World":
        """Another pipeline wrote into the target."""
        return replace(self, target=self.target | set(rows))

    def without_sink(self) -> "World":
        """The sink was emptied, and all that this pipeline wrote is asked for."""
        own = sorted(row for row in self.target if row[0].startswith("o"))
        return replace(self, sink=(), owed=tuple(own))

    def deliver(self) -> "World":
        """The sink got what it lacked; rows that the target does not hold any more are none."""
        held = [name for name, act in self.owed if (name, act) in self.target]
        return replace(self, sink=tuple(sorted([*self.sink, *held])), owed=())

    def deliver_some(self, sink: Counter) -> "World | None":
        """The sink holds this now; None where it cannot."""
        came, left = sink - Counter(self.sink), []
        if Counter(self.sink) - sink:
            return None
        for name, act in self.owed:
            if came[name] and (name, act) in self.target:
                came[name] -= 1
            else:
                left.append((name, act))
        if +came:
            return None
        return replace(self, sink=tuple(sorted(sink.elements())), owed=tuple(left))


@dataclass(frozen=True)
class Seen:
    """What tables, sink and reports hold."""

    target: Counter
    quarantine: Counter
    told: Fates
    sink: Counter


@dataclass
class Oracle:
    """All worlds that may be the true one. `limit`: the largest amount that the rule lets pass."""

    worlds: set[World] = field(default_factory=lambda: {World()})
    files: list[list[str]] = field(default_factory=list)
    limit: float = 100.0
    reached: bool = True
    """Whether the sink can be delivered to."""
    acts: int = 0
    saved: list[tuple[int, frozenset[Row]]] = field(default_factory=list)
    """Versions of the target, and its rows then."""

    def change(self, **fields: object) -> None:
        """Change every world alike."""
        self.worlds = {replace(world, **fields) for world in self.worlds}

    def land(self, lines: list[str]) -> None:
        """A file lands."""
        self.files.append(lines)
        number = len(self.files) - 1
        self.worlds = {replace(w, pending=(*w.pending, number)) for w in self.worlds}

    def finish(self, world: World, files: Iterable[int]) -> World:
        """A run that ended: files judged, told, delivered where the sink can be reached."""
        for number in files:
            world = world.judge(self.files[number], self.limit, self.acts)
        world = world.tell()
        return world.deliver() if self.reached else world

    def run(self, seen: Seen) -> None:
        """A scheduled run ended well."""
        self.acts += 1
        after = {replace(self.finish(w, w.pending), pending=()) for w in self.worlds}
        self._observe(after, seen)

    def backfill(self, seen: Seen) -> None:
        """A backfill of everything ended well; what the schedule has to read stays."""
        self.acts += 1
        every = range(len(self.files))
        after = {
            replace(self.finish(replace(w, untold=()), every), untold=w.untold) for w in self.worlds
        }
        self._observe(after, seen)

    def deliver(self, seen: Seen) -> None:
        """`sluice deliver` ended well."""
        self._observe({w.deliver() for w in self.worlds}, seen)

    def stop(self, seen: Seen) -> None:
        """A run was cut off, or failed: of the waiting files some are judged."""
        self.acts += 1
        after = set()
        for world in self.worlds:
            for number in (None, *world.pending):
                if number is not None:
                    judged = world.judge(self.files[number], self.limit, self.acts)
                    world = replace(judged, pending=world.pending[1:])
                if world.ids == seen.target:
                    after |= {world.tell(files) for files in range(len(world.untold) + 1)}
        after = {some for w in after if (some := w.deliver_some(seen.sink)) is not None}
        self._keep(after, seen, lambda w: w.told == seen.told)

    def refuse(self, seen: Seen) -> None:
        """A run refused to do anything; it may tell what no report had told."""
        after = {w.tell(files) for w in self.worlds for files in range(len(w.untold) + 1)}
        self._keep(after, seen, lambda w: (w.ids, w.told) == (seen.target, seen.told))

    def _observe(self, worlds: set[World], seen: Seen) -> None:
        self._keep(
            worlds,
            seen,
            lambda w: (
                (w.ids, Counter(w.quarantine), w.told, Counter(w.sink))
                == (seen.target, seen.quarantine, seen.told, seen.sink)
            ),
        )

    def _keep(self, worlds: set[World], seen: Seen, fits: object) -> None:
        kept = {world for world in worlds if fits(world)}
        assert kept, f"seen:\n  {seen}\npossible:\n" + "\n".join(f"  {w}" for w in worlds)
        self.worlds = kept


def find_reason(line: str, limit: float) -> str | None:
    """Why a line is refused; None for one that is not."""
    if line.startswith("{broken"):
        return "malformed"
    record = json.loads(line)
    if "order_id" not in record:
        return "null_key"
    return None if 0 <= record["amount"] <= limit else "amount_in_range"
