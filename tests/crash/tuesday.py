"""What a pipeline's tables, its sink and its reports must say, whatever an operator does: in plain
Python, without Spark.

A kill leaves several possibilities: some of the waiting files are judged and the others are not. So
an oracle holds all worlds that may be the true one, and what is observed rules out the others.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import product

Row = tuple[str, float, int]
"""An order's id, its amount, and the act by which it came into the table."""
Sold = tuple[tuple[str, float], ...]
"""What the sink holds: an order's id and its amount."""
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
    largest one (`limit`) that the rule lets pass. `order`: of the rows of a key the one with the
    largest amount stays (1), the one with the smallest (-1), or the first (0)."""

    factor: int = 1
    limit: float = 100.0
    order: int = 0

    def read(self, line: str) -> tuple[str, float | None, str | None]:
        """A record's id, its amount, and why it is refused; None for one that is not."""
        if line.startswith("{broken"):
            return "", None, "malformed"
        record = json.loads(line)
        amount = record["amount"] * self.factor
        if "order_id" not in record:
            return "", amount, "null_key"
        return record["order_id"], amount, None if 0 <= amount <= self.limit else "amount_in_range"

    def beats(self, new: float, held: float) -> bool:
        """Whether a row takes the place of one with the same key."""
        return self.order * (new - held) > 0

    def put(self, sink: Sold, new: tuple[str, float]) -> Sold:
        """What a sink holds after it got a row: with an order one row a key, of equal ones the
        newer."""
        held = dict(sink).get(new[0])
        if not self.order or held is None:
            return tuple(sorted([*sink, new]))
        return (
            sink
            if self.beats(held, new[1])
            else tuple(sorted({**dict(sink), **dict([new])}.items()))
        )


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
    sink: Sold = ()
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
        held, quarantine = {row[0]: row for row in self.target}, dict(self.quarantine)
        new: list[Row] = []
        fates = Counter()
        for line in lines:
            name, amount, reason = definition.read(line)
            fates["read"] += 1
            if reason is None and (
                name not in held or definition.beats(amount or 0, held[name][1])
            ):
                fates["duplicate" if name in held else "written"] += 1
                held[name] = (name, amount or 0, act)
                new.append(held[name])
            elif reason is not None and (line, amount) not in quarantine:
                quarantine[line, amount] = reason
                fates["quarantined"] += 1
            else:
                fates["duplicate"] += 1
        return replace(
            self,
            target=frozenset(held.values()),
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

    def deliver(self, definition: Definition) -> "World":
        """The sink got what it lacked; rows that the target does not hold any more are none."""
        sink = self.sink
        for row in self.owed:
            sink = definition.put(sink, row[:2]) if row in self.target else sink
        return replace(self, sink=sink, owed=())

    def deliver_some(self, sink: Counter, definition: Definition) -> "set[World]":
        """The worlds in which the sink holds this now, after it got some of what it lacked."""
        if not definition.order:
            return self._add_some(sink)
        before, after = dict(self.sink), dict(sink.elements())
        names = sorted({row[0] for row in self.owed})
        moved = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        if sink.total() != len(after) or moved - {*names}:
            return set()
        unsent = [self._leave(name, after.get(name), definition) for name in names]
        return {
            replace(self, sink=tuple(sorted(after.items())), owed=tuple(sorted(sum(left, ()))))
            for left in product(*unsent)
        }

    def _leave(
        self, name: str, holds: float | None, definition: Definition
    ) -> "set[tuple[Row, ...]]":
        """What may be left of the rows of one key where the sink holds this: one that gave way to
        another in the same run may have been sent before."""
        begin: Sold = tuple(item for item in self.sink if item[0] == name)
        found: set[tuple[Sold, tuple[Row, ...]]] = {(begin, ())}
        for row in [row for row in self.owed if row[0] == name]:
            sent = {(definition.put(held, row[:2]), left) for held, left in found}
            found = sent | {(held, (*left, row)) for held, left in found}
        return {left for held, left in found if dict(held).get(name) == holds}

    def _add_some(self, sink: Counter) -> "set[World]":
        came, left = sink - Counter(self.sink), []
        if Counter(self.sink) - sink:
            return set()
        for row in self.owed:
            if came[row[:2]] and row in self.target:
                came[row[:2]] -= 1
            else:
                left.append(row)
        if +came:
            return set()
        return {replace(self, sink=tuple(sorted(sink.elements())), owed=tuple(left))}


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
    first: int = 0
    """The first file that is still there to be read."""
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

    def lose_source(self) -> None:
        """The source is gone with all that was in it."""
        self.first = len(self.files)
        self.change(pending=())

    def finish(self, world: World, files: Iterable[int]) -> World:
        """A run that ended: files judged, told, delivered where the sink can be reached."""
        for number in files:
            world = self._judge(world, number)
        world = world.tell()
        return world.deliver(self.definition) if self.reached else world

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
        every = range(self.first, len(self.files))
        after = {
            replace(self.finish(replace(w, untold=()), every), untold=w.untold) for w in self.worlds
        }
        self._observe(after, seen)

    def deliver(self, seen: Seen) -> None:
        """`sluice deliver` ended well."""
        self._observe({w.deliver(self.definition) for w in self.worlds}, seen)

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
        after = {some for w in after for some in w.deliver_some(seen.sink, self.definition)}
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
