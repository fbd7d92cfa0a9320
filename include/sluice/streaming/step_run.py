"""One step within one run: what its batches need to know, and what they found."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..checkpoint import Entry, Lease
from ..quality.expectations import validate_table
from ..quality.rules import RowRule, row_result
from ..report import Counts, RuleResult
from ..sources import Intake
from ..spark.columns import col
from ..spark.tables import Transaction
from ..spec import RuleSpec, Step
from ..storage import Paths
from .survey import Survey

Verdict = tuple[int, int, list[str]]
"""(rows evaluated, rows unexpected, samples) of one rule."""


@dataclass
class StepRun:
    """One step within one run: what its batches need to know, and what they found."""

    step: Step
    paths: Paths
    intake: Intake
    target: str
    """Where the target lies; empty for a step without one."""
    folder: Path
    """Of the pipeline's YAML."""
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
    stateful: bool = False
    """Spark keeps something from batch to batch, so a batch must be read, and only once."""
    replace_where: str | None = None
    finished: list[Entry] = field(default_factory=list)
    """The batches so far, with those of runs that did not live to report them."""
    refused: dict[str, Verdict] = field(default_factory=dict)
    """What the rules found in a batch that a `stop` rule refused."""
    table_results: list[RuleResult] = field(default_factory=list)
    """Verdicts of table-level rules."""
    on_batch: Callable[[Entry], None] = lambda entry: None
    """Called with each finished batch."""

    def transaction(self, batch: int, note: dict | None = None) -> Transaction:
        """The key under which a batch writes. The checkpoint's generation is part of it: a new checkpoint counts its batches from 0 again."""
        return Transaction(
            f"sluice/{self.paths.pipeline}/{self.step.name}/{self.generation}", batch, note or {}
        )

    def verdicts(self, survey: Survey) -> dict[str, Verdict]:
        """A survey's rule counts, by the rule's name."""
        return {rule.name: counts for rule, counts in zip(self.rules, survey.rules, strict=True)}

    def carry_over(self, entry: Entry) -> None:
        """Take a batch into this run's report that another run finished and did not live to report."""
        self.run_ids.append(entry.written_by)
        self.finished.append(entry)

    def drop_uncommitted(self, newest_commit: int | None) -> None:
        """Leave out a batch that Spark did not commit: the next run gets it again, finds its rows in the table, and reports it."""
        self.finished = [
            entry
            for entry in self.finished
            if newest_commit is not None and entry.batch.batch_id <= newest_commit
        ]

    def rule_results(self) -> list[RuleResult]:
        """The verdict of each row rule over the batches so far; of the samples the first and the last are kept."""
        return [row_result(rule, *self._verdict(rule.name)) for rule in self.rules]

    def _verdict(self, rule: str) -> Verdict:
        found = [
            verdicts[rule]
            for verdicts in (*(entry.rules for entry in self.finished), self.refused)
            if rule in verdicts
        ]
        texts = sorted({text for _, _, samples in found for text in samples})
        return (
            sum(evaluated for evaluated, _, _ in found),
            sum(unexpected for _, unexpected, _ in found),
            texts[:1] + texts[1:][-1:],
        )

    def judge_run(self, spark: SparkSession) -> list[RuleResult]:
        """The verdict of each table-level rule on the rows this run wrote."""
        rows = (
            spark.read.format("delta").load(self.target).where(F.col("_run_id").isin(*self.run_ids))
        )
        return validate_table(
            rows.select(*[col(c) for c in self.business.names]), self.table_rules, self.hidden
        )
