"""One step within one run: what its batches need to know, and what they found."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..checkpoint import Entry, Lease
from ..quality.expectations import validate_table
from ..quality.rules import RowRule, row_result
from ..report import BatchReport, Counts, RuleResult
from ..spec import Paths, RuleSpec, Step
from .columns import col
from .survey import Survey
from .tables import Transaction

Verdict = tuple[int, int, list[str]]
"""(rows evaluated, rows unexpected, samples) of one rule."""


@dataclass
class StepRun:
    """One step within one run: what its batches need to know, and what they found."""

    step: Step
    paths: Paths
    run_ids: list[str]
    """This run, then the runs whose unfinished batch it completed."""
    generation: str
    checkpoint: str
    business: StructType
    keys: list[str]
    rules: list[RowRule]
    table_rules: list[RuleSpec] = field(default_factory=list)
    hidden: set[str] = field(default_factory=set)
    late: str = "merge"
    open_batch: int | None = None
    """A batch that an earlier run planned and may have written."""
    before_write: Callable[[], None] = lambda: None
    """Raises when this run may not write any more (its lease or its parent is lost)."""
    take_turn: Callable[[], AbstractContextManager[Lease | None]] = nullcontext
    """The right to commit to the target, for the length of a block."""
    count_dropped: Callable[[Counts], None] = lambda counts: None
    """Adds what the state store's operator dropped from a batch."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """Files no reader can read -> why; each becomes one quarantined record."""
    replace_where: str | None = None
    batches: list[BatchReport] = field(default_factory=list)
    tallies: dict[str, Verdict] = field(default_factory=dict)
    table_results: list[RuleResult] = field(default_factory=list)
    """Verdicts of table-level rules."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of the waiting files, by path."""
    on_batch: Callable[[BatchReport, int], None] = lambda report, size: None
    """Called with each finished batch and its bytes."""

    @property
    def target(self) -> str:
        """The target's path."""
        return self.paths.table(self.step.name, self.step.sink.table)

    def transaction(self, batch: int, note: dict | None = None) -> Transaction:
        """The key under which a batch writes. The checkpoint's generation is part of it: a new checkpoint counts its batches from 0 again."""
        return Transaction(f"sluice/{self.paths.pipeline}/{self.step.name}/{self.generation}", batch, note or {})

    def tally(self, verdicts: dict[str, Verdict]) -> None:
        """Add a batch's rule counts to the run's; of the samples the first and the last are kept."""
        for name, (evaluated, unexpected, samples) in verdicts.items():
            before = self.tallies.get(name, (0, 0, []))
            texts = sorted({*before[2], *samples})
            self.tallies[name] = (before[0] + evaluated, before[1] + unexpected, texts[:1] + texts[1:][-1:])

    def verdicts(self, survey: Survey) -> dict[str, Verdict]:
        """A survey's rule counts, by the rule's name."""
        return {rule.name: counts for rule, counts in zip(self.rules, survey.rules, strict=True)}

    def carry_over(self, entry: Entry) -> None:
        """Take a batch into this run's report that another run finished and did not live to report."""
        self.run_ids.append(entry.written_by)
        self.batches.append(entry.batch)
        self.tally(entry.rules)

    def rule_results(self) -> list[RuleResult]:
        """The verdict of each row rule over the batches so far."""
        return [row_result(rule, *self.tallies.get(rule.name, (0, 0, []))) for rule in self.rules]

    def judge_run(self, spark: SparkSession) -> list[RuleResult]:
        """The verdict of each table-level rule on the rows this run wrote."""
        rows = spark.read.format("delta").load(self.target).where(F.col("_run_id").isin(*self.run_ids))
        return validate_table(rows.select(*[col(c) for c in self.business.names]), self.table_rules, self.hidden)
