"""The further sinks follow the target: each gets, batch by batch, what the target holds and it
lacks. One that is away or refuses holds up neither the target nor what comes behind."""

import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import SparkSession

from ..checkpoint import Due, Entry, Position, Sent, read_position, write_position
from ..errors import (
    CheckpointBusy,
    LeaseLost,
    ParentLost,
    SluiceError,
    SpecError,
    TransientError,
    UnbalancedReport,
)
from ..report import told_by
from ..sinks import Preparation, prepare_sink
from ..spark.tables import written_batches
from ..spec import SinkKind, Step
from .outlet import Outlet, Taken, is_after
from .owing import due_of, due_whole, follow_places, refused_by
from .run import Run
from .tally import Tally

_log = logging.getLogger(__name__)
_OURS = (CheckpointBusy, LeaseLost, ParentLost, UnbalancedReport)
"""Not the sink's doing: these end the run."""


class Followers:
    """The further sinks of one step in one run.

    What changes meanwhile: which of them are out until the next run, and what they refused.
    """

    def __init__(
        self, run: Run, step: Step, outlet: Outlet, home: str, only: list[str] | None = None
    ) -> None:
        """Args: home: the checkpoint generation that the run works on. only: titles of the sinks
        that are meant; all by default."""
        self._run, self._step, self._outlet, self._home = run, step, outlet, home
        there = step.further_sinks if outlet.table else {}
        self._sinks = {t: sink for t, sink in there.items() if only is None or t in only}
        self._out: dict[str, SluiceError] = {}
        self._refused: set[tuple[str, str]] = set()

    def open(self, tally: Tally, open_batch: int | None) -> None:
        """Prepare each sink, and find what it lacks of earlier runs.

        Args: open_batch: will come again, so it is no earlier one. Raises SpecError for a sink
        that cannot be written as declared.
        """
        for title, sink in self._sinks.items():
            before = read_position(self._path(title)) if sink.durable else None
            coming = self._outlet.preparation(self._run.spark, title, before)
            self._prepare(title, sink, replace(coming, warn=tally.warn))
        if not self._durable:
            return
        prefix = self._run.paths.home(self._step.name)
        written = written_batches(self._run.spark, self._outlet.table, prefix)
        if open_batch is not None and self._home in written:
            written[self._home] = min(written[self._home], open_batch - 1)
        with self._turn():
            for title in self._durable:
                before = read_position(self._path(title))
                after = self._catch_up(title, before, written, tally)
                if after != before:
                    write_position(self._path(title), after)
                tally.follow(title, after)

    def follow(self, session: SparkSession, tally: Tally, entries: Sequence[Entry] = ()) -> None:
        """Give each sink what it lacks: older batches first, then those that have just ended."""
        fresh = [due_of(entry) for entry in entries]
        exact = {entry.batch.key for entry in entries if not entry.batch.replayed}
        passing = [title for title in self._sinks if title not in self._durable]
        for title in passing:
            for due in fresh:
                self._run.rights.check(self._step.name)
                given = self._send(session, title, due, due.key in exact) if due.rows else Taken()
                tally.pass_on(title, given.rows)
        if not self._durable or not (fresh or any(lack.batches for lack in tally.lacking)):
            return
        with self._turn():
            for title in self._durable:
                tally.follow(title, self._give(session, title, fresh, exact))

    def demand(self, asked: Sequence[Due], by_name: bool, tally: Tally) -> None:
        """Note batches as due, whatever the sinks are known to have; one that is the whole target
        takes the place of all others.

        Args: by_name: a person named them, so that those are meant as well which were given up.
        """
        with self._turn():
            for title in self._durable:
                position = read_position(self._path(title)) or Position(sink=title)
                left_out = set() if by_name else {batch.key for batch in position.given_up}
                wanted = [due for due in asked if due.whole or due.key not in left_out]
                whole = next((due for due in wanted if due.whole), None)
                demanding = (
                    position.demanding(wanted) if whole is None else position.starting_over(whole)
                )
                write_position(self._path(title), demanding)
                tally.follow(title, demanding)

    def _give(
        self, session: SparkSession, title: str, fresh: list[Due], exact: set[str]
    ) -> Position:
        """Try every batch that is due; each that was sent is noted before the next one goes."""
        noted = read_position(self._path(title)) or Position(sink=title)
        position = noted.owing(fresh)
        for due in position.due:
            if self._is_over(title, due):
                position = position.refused(self._explain(title, due))
                continue
            self._run.rights.check(self._step.name)
            sent = self._try(session, title, due, due.key in exact)
            if isinstance(sent, Sent):
                noted = position = position.settled(sent)
                write_position(self._path(title), noted)
            else:
                position = position.refused(sent)
        if position != noted:
            write_position(self._path(title), position)
        return position

    def _is_over(self, title: str, due: Due) -> bool:
        """Whether a batch is left to a later run."""
        late = time.monotonic() >= self._run.deadline
        return late or title in self._out or (title, due.key) in self._refused

    def _explain(self, title: str, due: Due) -> Due:
        """A batch that is not tried, and why."""
        error = self._out.get(title)
        return due if error is None else refused_by(due, error)

    def _try(self, session: SparkSession, title: str, due: Due, fresh: bool) -> Sent | Due:
        """A batch as it was sent, or as it stays due."""
        try:
            taken = self._send(session, title, due, fresh)
        except _OURS:
            raise
        except Exception as error:  # noqa: BLE001 (a sink, and the user's code in it, raises anything)
            why = _as_ours(error, title, self._outlet.hidden)
            _log.warning("%s did not take batch %s: %s", title, due.key, why)
            if isinstance(why, TransientError):
                self._out[title] = why
            self._refused.add((title, due.key))
            return refused_by(due, why)
        told = asdict(taken)
        return Sent(key=due.key, run_id=self._run.run_id, home=self._home, **told)

    def _send(self, session: SparkSession, title: str, due: Due, fresh: bool) -> Taken:
        return self._outlet.send(session, self._sinks[title], title, due, fresh)

    def _catch_up(
        self, title: str, position: Position | None, written: dict[str, int], tally: Tally
    ) -> Position:
        """A position with what its sink lacks of earlier runs, and without what a report tells."""
        if position is None:
            if written:
                tally.warn(
                    f"{title} follows the target from here on: whether it has what the target took "
                    "in before is not known, and `sluice deliver` with --all sends what it lacks"
                )
            places = self._sinks[title].mirrored_by if self._outlet.mirrored else None
            return Position(sink=title, seen=written, before=written, places=places)
        behind = {
            generation: newest
            for generation, newest in written.items()
            if newest > position.seen.get(generation, -1)
        }
        if behind:
            position = position.owing(list(self._lacking(position, behind)))
        if self._outlet.mirrored:
            whole = partial(due_whole, self._outlet, self._run.spark, written, self._home)
            position = follow_places(position, self._sinks[title].mirrored_by, whole, tally.warn)
        return self._keep_untold(position)

    def _lacking(self, position: Position, behind: dict[str, int]) -> Iterable[Due]:
        """Batches that the target has and the position does not know; also those of which no row
        is left."""
        after = {generation: position.seen.get(generation, -1) for generation in behind}
        counts = self._outlet.count_batches(self._run.spark, is_after(after))
        for generation, newest in behind.items():
            for number in range(after[generation] + 1, newest + 1):
                key = f"{generation}/{number}"
                rows, now = counts.get(key, 0), datetime.now(UTC)
                yield Due(key=key, rows=rows, since=now, mirrored=self._outlet.mirrored)

    def _keep_untold(self, position: Position) -> Position:
        """What no stored report tells of is this run's to tell, where the run that sent it worked
        on the same checkpoint: that one is over."""
        run_id, folder = self._run.run_id, self._run.paths.reports()
        told = {
            other: told_by(folder, other, replaced=other == run_id)
            for other in {sent.run_id for sent in position.sent}
        }
        kept = [
            sent.model_copy(update={"run_id": run_id}) if sent.home == self._home else sent
            for sent in position.sent
            if f"{position.sink} {sent.key}" not in told[sent.run_id]
        ]
        return position.model_copy(update={"sent": kept})

    def _prepare(self, title: str, sink: SinkKind, coming: Preparation) -> None:
        """Prepare a sink; one that fails is out until the next run. Raises SpecError."""
        try:
            prepare_sink(sink, coming)
        except SpecError:
            raise
        except Exception as error:  # noqa: BLE001 (as above)
            self._out[title] = _as_ours(error, title, self._outlet.hidden)
            _log.warning("%s is out in this run: %s", title, self._out[title])

    @property
    def _durable(self) -> dict[str, SinkKind]:
        return {title: sink for title, sink in self._sinks.items() if sink.durable}

    def _path(self, title: str) -> str:
        return self._run.paths.position(self._step.name, title)

    def _turn(self) -> AbstractContextManager[None]:
        return self._run.rights.turn_at_sinks(self._run.paths.positions(self._step.name))


def _as_ours(error: Exception, title: str, hidden: frozenset[str]) -> SluiceError:
    """An error nobody foresaw as one that may pass; its text may quote a row."""
    if isinstance(error, SluiceError):
        return error
    text = "" if hidden else f": {' '.join(str(error).split())[:400]}"
    return TransientError(
        f"unexpected {type(error).__name__}{text}",
        where=title,
        do="It is tried again with the next run",
    )
