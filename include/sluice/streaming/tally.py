"""What the batches of a step came to: the one thing that changes while a step runs."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce

from ..backlog import Watched, mark_behind, table_version, write_mark
from ..checkpoint import (
    Checkpoint,
    Entry,
    Position,
    claimed_by_others,
    find_unreported,
    forget,
    note_batch,
    note_told,
)
from ..report import (
    Counts,
    Delivered,
    HeldInState,
    Refusal,
    RuleResult,
    StepReport,
    Undelivered,
    add_histograms,
    merge_ranges,
    sum_refreshed,
)
from ..spark.columns import FUTURE_TIME, MALFORMED, NULL_KEY, NULL_TIME, UNREADABLE
from ..spark.kept_state import Kept
from ..spec.definition import digest_parts
from ..storage import Paths
from .facts import Facts
from .holding import held_after
from .input_reports import report_inputs
from .laps import PARTS
from .plan import Plan, Rules
from .sink_reports import report_deliveries, report_lacks
from .survey import Verdict

REASONS = (UNREADABLE, MALFORMED, NULL_KEY, NULL_TIME, FUTURE_TIME)
_NO_RANGES: dict[str, tuple[int, int]] = {}
_NO_BARS: list[int] = []
_NO_PARTS: dict[str, str] = {}
DRAIN = "plan, commit"
"""The phase of a drain beside its batches: Spark plans each, and commits it."""


class Tally:
    """The batches of one step so far, those of runs that did not live to report them among them.
    `checkpoint`: the folder of the step's checkpoint."""

    def __init__(self, checkpoint: str, run_id: str, facts: Facts) -> None:
        self.checkpoint, self.run_id, self.facts = checkpoint, run_id, facts
        before = Checkpoint.below(checkpoint)
        self._before = before.newest_commit, before.watermark_ms
        self.finished: list[Entry] = []
        self.warnings: list[str] = []
        self.table_results: list[RuleResult] = []
        self.counted: list[Kept] | None = None
        self.held: list[HeldInState] = []
        self.left_for_next_run = False
        self._rules, self._parts = Rules([], []), _NO_PARTS
        self._refused: dict[str, Verdict] = {}
        self._timings: dict[str, float] = defaultdict(float)
        self._passed: Counter[str] = Counter()
        self._positions: dict[str, Position] = {}
        self._watched: Watched | None = None

    @property
    def step(self) -> str:
        """The step's name."""
        return self.facts.name

    @property
    def amount(self) -> int:
        """How much of the backlog is done, in the unit of the source."""
        return sum(entry.amount for entry in self.finished)

    def resume(self, paths: Paths, step: str) -> None:
        """Take over what a run that died had finished, and forget the notes a report holds."""
        newest = Checkpoint.below(self.checkpoint).newest_commit
        missing, reported = find_unreported(paths, step, self.checkpoint, self.run_id, newest)
        for entry in missing:
            self.finished.append(entry)
            note_batch(self.checkpoint, entry.model_copy(update={"run_id": self.run_id}))
        forget(self.checkpoint, reported)

    def take(self, entry: Entry) -> None:
        """Note a finished batch, before Spark commits it."""
        note_batch(self.checkpoint, entry)
        self.finished.append(entry)
        for part, seconds in entry.batch.timings.items():
            self._timings[part] += seconds

    def judge_by(self, plan: Plan) -> None:
        """By what the batches are judged; their verdicts are those of its rules."""
        self._rules, self._parts = plan.rules, digest_parts(plan.step, plan.place.folder)

    def refuse(self, verdicts: dict[str, Verdict], results: list[RuleResult]) -> None:
        """Keep what the rules found in a batch that was refused."""
        self._refused = verdicts
        self.table_results += [result for result in results if result.level == "table"]

    def pass_on(self, sink: str, rows: int) -> None:
        """Add rows that a sink got which remembers nothing."""
        self._passed[sink] += rows

    def follow(self, sink: str, position: Position) -> None:
        """What a further sink has got by now."""
        self._positions[sink] = position

    def account_for(self, watched: Watched | None) -> None:
        """What people did to the target, which this run's report tells."""
        if watched is not None:
            self._watched = watched
            self.warn(*watched.acts)

    def settle(self) -> None:
        """Note what the stored report tells, so that no other does; what was done to the target
        meanwhile is the next run's to tell. Raises OSError."""
        note_told(self.checkpoint, self._parts, held_after(self.run_id, self.held))
        mark = mark_behind(self.facts.target, self._watched)
        if mark is not None:
            write_mark(self.checkpoint, mark)

    @property
    def lacking(self) -> list[Undelivered]:
        """What each further sink lacks."""
        return report_lacks(self._positions)

    @property
    def claimed(self) -> set[str]:
        """The batches of which the notes say that another run tells."""
        return claimed_by_others(self.checkpoint, self.step, self.run_id)

    def warn(self, *sentences: str) -> None:
        """What a person should know, each once."""
        self.warnings += [s for s in dict.fromkeys(sentences) if s not in self.warnings]

    @contextmanager
    def spending(self, phase: str) -> Iterator[None]:
        """Add the time that a block takes to that of a phase."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._timings[phase] += time.monotonic() - began

    def close(self) -> None:
        """Leave out a batch that Spark did not commit: the next run gets it again, finds its rows
        in the table, and reports it."""
        newest = Checkpoint.below(self.checkpoint).newest_commit
        self.finished = [
            entry
            for entry in self.finished
            if newest is not None and entry.batch.batch_id <= newest
        ]

    def report(self) -> StepReport:
        """The step's part of the report."""
        batches, after = [e.batch for e in self.finished], Checkpoint.below(self.checkpoint)
        samples = sorted({sample for batch in batches for sample in batch.conflict_samples})
        self.warn(*(warning for batch in batches for warning in batch.warnings))
        deliveries = report_deliveries(self._positions, self.run_id)
        facts = self.facts
        tables = {"target": facts.target, "quarantine": facts.quarantine, "late": facts.late}
        versions = {name: table_version(path) for name, path in tables.items() if path}
        return StepReport(
            name=facts.name,
            target=facts.shown,
            quarantine=facts.quarantine,
            within=facts.within,
            counts=sum((batch.counts for batch in batches), Counts()),
            batches=batches,
            rules=self._rules.results(self._verdict) + self.table_results,
            refusals=list(self._refusals()),
            offsets_before=self._before[0],
            watermark_before_ms=self._before[1],
            offsets_after=after.newest_commit,
            watermark_after_ms=after.watermark_ms,
            files_read=sum(batch.files for batch in batches),
            bytes_read=sum(entry.bytes for entry in self.finished),
            ranges=reduce(merge_ranges, [batch.ranges for batch in batches], _NO_RANGES),
            delivered=self._delivered(deliveries),
            deliveries=deliveries,
            undelivered=[lack for lack in self.lacking if lack.batches or lack.given_up],
            conflicts=sum(batch.conflicts for batch in batches),
            overtaken=sum(batch.overtaken for batch in batches),
            conflict_samples=samples[:1] + samples[1:][-1:],
            lateness=reduce(add_histograms, [batch.lateness for batch in batches], _NO_BARS),
            inputs=report_inputs(facts, self.checkpoint, batches),
            held=self.held,
            refresh=sum_refreshed(batches),
            left_for_next_run=self.left_for_next_run,
            versions={name: version for name, version in versions.items() if version is not None},
            warnings=list(self.warnings),
            timings=dict(self._list_phases()),
        )

    def _list_phases(self) -> Iterable[tuple[str, float]]:
        """Seconds by phase; of the drain what its batches' parts leave."""
        parts = sum(self._timings.get(part, 0.0) for part in PARTS)
        for phase, spent in self._timings.items():
            seconds = round(spent - parts if phase == DRAIN else spent, 3)
            if seconds > 0:
                yield phase, seconds

    def _delivered(self, deliveries: list[Delivered]) -> dict[str, int]:
        """Rows by sink."""
        total = Counter(self._passed)
        for entry in self.finished:
            total.update(entry.batch.delivered)
        for sent in deliveries:
            total[sent.sink] += sent.rows
        return dict(total)

    def _refusals(self) -> Iterator[Refusal]:
        """Why rows were refused, over the batches."""
        refusing = (r.name for r in self._rules.row if r.spec.on_fail == "quarantine")
        for reason in (*REASONS, *refusing):
            _, rows, samples = self._verdict(reason)
            if rows:
                yield Refusal(reason=reason, rows=rows, samples=samples)

    def _verdict(self, rule: str) -> Verdict:
        """Of a rule over the batches; of the samples the first and the last."""
        told = (*(entry.rules for entry in self.finished), self._refused)
        found = [verdicts[rule] for verdicts in told if rule in verdicts]
        texts = sorted({text for _, _, samples in found for text in samples})
        evaluated = sum(evaluated for evaluated, _, _ in found)
        return evaluated, sum(bad for _, bad, _ in found), texts[:1] + texts[1:][-1:]
