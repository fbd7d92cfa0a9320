"""Worked pipelines in whole runs, as `make demo NAME=...` drives them."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sluice.demo.worked import render_short, run_worked
from sluice.report import Counts, RunReport
from sluice.report.summary import list_tables

from tests.documentation import FOLDER, hide_sizes


@dataclass(frozen=True)
class Driven:
    """A worked pipeline after its landings. `reports`: of each run."""

    spark: object
    name: str
    root: Path
    reports: list[RunReport]

    def counts(self, step: str) -> list[Counts]:
        """What became of a step's rows, run by run."""
        return [one.counts for report in self.reports for one in report.steps if one.name == step]

    def rows(self, table: str, *columns: str, run: int = -1) -> Counter:
        """A table as a multiset, as a run left it."""
        place = f"{self.root}/tables/{self.reports[run].pipeline}/{table}"
        versions = {at: n for step in self.reports[run].steps for _, at, n in list_tables(step)}
        rows = self.spark.read.format("delta").option("versionAsOf", versions[place]).load(place)
        return Counter(tuple(row) for row in rows.selectExpr(*columns).collect())

    def reasons(self, step: str) -> Counter:
        """Refused rows by reason."""
        found = self.rows(f"{step}__quarantine", "array_join(reasons, '|')")
        return Counter(reason for (told,) in found.elements() for reason in told.split("|"))

    def failed(self, run: int) -> set[str]:
        """The rules that failed in a run."""
        rules = [rule for step in self.reports[run].steps for rule in step.rules]
        return {rule.name for rule in rules if rule.outcome == "failed"}

    @property
    def is_on_its_page(self) -> bool:
        """True when the page quotes the report of a run, word for word but for the bytes of a
        state, which hang on how well they were compressed."""
        page = hide_sizes((FOLDER / "examples" / f"{self.name}.md").read_text(encoding="utf-8"))
        told = [hide_sizes(render_short(report)) for report in self.reports]
        return any(f"```text\n{text}\n```" in page for text in told)


def drive(spark: object, name: str, folder: Path) -> Driven:
    """Run a worked pipeline once a landing; every report balances."""
    reports = run_worked(name, folder / "root", lambda text: None)
    for report in reports:
        report.check()
    return Driven(spark, name, folder / "root", reports)
