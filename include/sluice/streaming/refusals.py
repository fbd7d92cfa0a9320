"""What keeps a batch from being written at all: `stop` rules, and fields nobody declared."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..errors import RuleStop, SourceError
from ..quality.expectations import cached, validate_table
from ..report import Outcome, RuleResult
from ..spark.columns import RESCUED, col
from .plan import Plan
from .survey import Survey
from .written import Unique


class BatchStopped(RuleStop):
    """Raised when a `stop` rule refuses a batch. `results`: of all the rules that were asked."""

    def __init__(self, plan: Plan, survey: Survey, results: list[RuleResult]) -> None:
        failed = [result for result in results if result.outcome is not Outcome.PASSED]
        names = ", ".join(f"{r.name} ({r.outcome})" for r in failed)
        super().__init__(
            f"stopped by {names}: nothing of this batch was written, and the checkpoint is before "
            "it",
            where=plan.where,
            value=failed[0].samples or failed[0].message or None,
            do="Mend or remove the rows (or change the rule), then run again: the batch comes "
            "again as it is",
        )
        self.results = results
        self.verdicts = plan.rules.verdicts(survey)


def refuse_unknown_fields(plan: Plan, frame: DataFrame, survey: Survey) -> None:
    """Raise SourceError for undeclared fields under `unknown_fields: fail`; their names only are
    shown, values may be private."""
    if not survey.rescued or not plan.refuses_unknown_fields:
        return
    found = frame.where(F.col(RESCUED).isNotNull()).select(F.json_object_keys(RESCUED)).first()
    raise SourceError(
        f"{survey.rescued} row(s) have fields the schema does not declare",
        where=plan.where,
        value=found[0][:10] if found else None,
        do="Declare them in `schema`, or write `unknown_fields: rescue`",
    )


def refuse_by_row_rules(plan: Plan, survey: Survey) -> None:
    """Raise BatchStopped where a row-level `stop` rule did not pass, or more records are malformed
    than the source allows."""
    told = plan.rules.results(plan.rules.verdicts(survey).__getitem__)
    results = [result for result in told if result.on_fail == "stop"]
    _raise_for(plan, survey, results)


def refuse_by_table_rules(plan: Plan, survey: Survey, unique: Unique, match: str) -> None:
    """Raise BatchStopped where a table-level `stop` rule did not pass on the rows that the batch
    would bring into the table: those a `warn` rule is judged on as well.

    A batch that brings none has nothing to refuse: one of copies alone would else stand in the way
    of all that comes after it.
    """
    if not plan.rules.stops or not survey.good:
        return
    rows = plan.target.fresh(unique, match)
    rows = rows.select(*[col(c) for c in plan.columns.names])
    with cached(rows):
        if not rows.isEmpty():
            _raise_for(plan, survey, validate_table(rows, plan.rules.stops, set(plan.rules.hidden)))


def _raise_for(plan: Plan, survey: Survey, results: list[RuleResult]) -> None:
    if any(result.outcome is not Outcome.PASSED for result in results):
        raise BatchStopped(plan, survey, results)
