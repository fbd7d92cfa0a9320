"""What a pipeline's tables, its sink and its reports must say, whatever an operator does: in plain
Python, without Spark.

A kill leaves several possibilities: some of the waiting files are judged and the others are not. So
an oracle holds all worlds that may be the true one, and what is observed rules out the others.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

Row = tuple[str, float, int]
"""An order's id, its amount, and the act by which it came into the table."""
Refused = tuple[tuple[str, float | None], str]
"""A record and what the transform made of it, and why it was refused."""


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
class Definition:
    """What decides a row's fate: `factor` by which the transform multiplies its amount, and the
    largest one (`limit`) that the rule lets pass."""

    factor: int = 1
    limit: float = 100.0

    def read(self, line: str) -> tuple[str, float | None, str | None]:
        """A record's id, its amount, and why it is refused; None for one that is not."""
        if line.startswith("{broken"):
            return "", None, "malformed"
        record = json.loads(line)
        amount = record["amount"] * self.factor
        if "order_id" not in record:
            return "", amount, "null_key"
        return record["order_id"], amount, None if 0 <= amount <= self.limit else "amount_in_range"


@dataclass(frozen=True)
class World:
    """One possible state. `pending`: files that no finished batch has judged. `half`: what the
    quarantine table holds of a batch that is half done, and that its next try takes back first.
    `left`: what it holds of batches that nobody will finish; whoever meets these rows, or half
    ones, takes them over.
    `told`: what reports say; `untold`: file by file, of finished batches that no report tells yet.
    `owed`: rows that the sink lacks."""

    pending: tuple[int, ...] = ()
    target: frozenset[Row] = frozenset()
    quarantine: frozenset[Refused] = frozenset()
    half: frozenset[Refused] = frozenset()
    left: frozenset[Refused] = frozenset()
    told: Fates = Fates()
    untold: tuple[Fates, ...] = ()
    sink: tuple[tuple[str, float], ...] = ()
    owed: tuple[Row, ...] = ()

    @property
    def rows(self) -> Counter:
        """The target, as a reader sees it."""
        return Counter((name, amount) for name, amount, _ in self.target)

    @property
    def refused(self) -> Counter:
        """The quarantine table, as a reader sees it."""
        return Counter(
            (line, reason) for (line, _), reason in self.quarantine | self.half | self.left
        )

    def judge(self, lines: Iterable[str], definition: Definition, act: int) -> "World":
        """The world after a batch of these lines. Refused rows are the same where the record and
        what the transform made of it are."""
        known, quarantine = {name for name, _, _ in self.target}, dict(self.quarantine)
        new: list[Row] = []
        fates = Counter()
        for line in lines:
            name, amount, reason = definition.read(line)
            fates["read"] += 1
            if reason is None and name not in known:
                known.add(name)
                new.append((name, amount, act))
                fates["written"] += 1
            elif reason is not None and (line, amount) not in quarantine:
                quarantine[line, amount] = reason
                fates["quarantined"] += 1
            else:
                fates["duplicate"] += 1
        return replace(
            self,
            target=self.target | set(new),
            quarantine=frozenset(quarantine.items()),
            half=frozenset(row for row in self.half if row[0] not in quarantine),
            left=frozenset(row for row in self.left if row[0] not in quarantine),
            untold=(*self.untold, Fates(**fates)),
            owed=(*self.owed, *new),
        )

    def half_do(self, lines: Iterable[str], definition: Definition) -> "World":
        """The world after a batch that was cut off when its refused rows were written."""
        judged = self.judge(lines, definition, 0)
        return replace(self, half=judged.quarantine - self.quarantine, left=judged.left)

    def take_back(self) -> "World":
        """The next try of a batch that was half done begins."""
        return replace(self, half=frozenset())

    def abandon(self, everything: bool) -> "World":
        """The checkpoint is gone: nobody finishes what was half done."""
        quarantine = frozenset() if everything else self.quarantine
        left = self.left | self.half | (self.quarantine - quarantine)
        return replace(self, quarantine=quarantine, half=frozenset(), left=left)

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
        held = [row[:2] for row in self.owed if row in self.target]
        return replace(self, sink=tuple(sorted([*self.sink, *held])), owed=())

    def deliver_some(self, sink: Counter) -> "World | None":
        """The sink holds this now; None where it cannot."""
        came, left = sink - Counter(self.sink), []
        if Counter(self.sink) - sink:
            return None
        for row in self.owed:
            if came[row[:2]] and row in self.target:
                came[row[:2]] -= 1
            else:
                left.append(row)
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
    """All worlds that may be the true one. `definition`: of today."""

    worlds: set[World] = field(default_factory=lambda: {World()})
    files: list[list[str]] = field(default_factory=list)
    definition: Definition = Definition()
    reached: bool = True
    """Whether the sink can be delivered to."""
    follows: bool = True
    """Whether the sink is noted as one that follows the target."""
    acts: int = 0
    saved: list[tuple[int, frozenset[Row]]] = field(default_factory=list)
    """Versions of the target, and its rows then."""
    kept: list[tuple[int, frozenset[Refused]]] = field(default_factory=list)
    """The same of the quarantine table."""

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
            world = self._judge(world, number)
        world = world.tell()
        return world.deliver() if self.reached else world

    def _judge(self, world: World, number: int) -> World:
        judged = world.judge(self.files[number], self.definition, self.acts)
        return judged if self.follows else replace(judged, owed=world.owed)

    def run(self, seen: Seen) -> None:
        """A scheduled run ended well."""
        self.acts += 1
        after = {replace(self.finish(w.take_back(), w.pending), pending=()) for w in self.worlds}
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
        for world in {w for old in self.worlds for w in (old, old.take_back())}:
            for number in (None, *world.pending):
                if number is not None:
                    judged = self._judge(world.take_back(), number)
                    world = replace(judged, pending=world.pending[1:])
                if world.rows == seen.target:
                    tried = self._half_done(world)
                    after |= {w.tell(files) for w in tried for files in range(len(w.untold) + 1)}
        after = {some for w in after if (some := w.deliver_some(seen.sink)) is not None}
        fits = (seen.told, seen.quarantine)
        self._keep(after, seen, lambda w: (w.told, w.refused) == fits)

    def _half_done(self, world: World) -> set[World]:
        """The world, and those in which the next batch, of one file or more, is half done."""
        found = {world}
        for last in range(len(world.pending)):
            lines = [line for n in world.pending[: last + 1] for line in self.files[n]]
            found.add(world.take_back().half_do(lines, self.definition))
        return found

    def refuse(self, seen: Seen) -> None:
        """A run refused to do anything; it may tell what no report had told."""
        after = {w.tell(files) for w in self.worlds for files in range(len(w.untold) + 1)}
        self._keep(after, seen, lambda w: (w.rows, w.told) == (seen.target, seen.told))

    def _observe(self, worlds: set[World], seen: Seen) -> None:
        self._keep(
            worlds,
            seen,
            lambda w: (
                (w.rows, w.refused, w.told, Counter(w.sink))
                == (seen.target, seen.quarantine, seen.told, seen.sink)
            ),
        )

    def _keep(self, worlds: set[World], seen: Seen, fits: object) -> None:
        kept = {world for world in worlds if fits(world)}
        assert kept, f"seen:\n  {seen}\npossible:\n" + "\n".join(f"  {w}" for w in worlds)
        self.worlds = kept
