"""Lands every kind of a landing, runs once, and keeps what became of each kind's files."""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from sluice.checkpoint import normalize_uri
from sluice.report import RunReport
from sluice.spec import SYSTEM_COLUMNS

from tests.bad_input.kind import Landing, shorten
from tests.spark import conftest
from tests.spark.factories import Project

spark = conftest.spark  # the one session of both folders


@dataclass
class Outcome:
    """What one run made of a landing, by kind; and the report of the run after it."""

    project: Project
    report: RunReport
    after: RunReport | None = None
    raw: dict[str, list[bytes]] = field(default_factory=dict)
    """Kind -> the bytes kept of what is no text."""
    written: dict[str, Counter] = field(default_factory=dict)
    quarantined: dict[str, Counter] = field(default_factory=dict)


def read_by_kind(table: DataFrame, project: Project) -> dict[str, list[tuple[str, ...]]]:
    """Kind -> its rows as (JSON without NULLs, reasons, detail, row).

    A table has the first, quarantine the rest.
    """
    columns = [c for c in table.columns if c not in SYSTEM_COLUMNS]
    shown = (
        [F.col(c) for c in ("row", "reasons", "detail", "raw")]
        if "reasons" in columns
        else [F.to_json(F.struct(*[F.col(f"`{c}`") for c in columns]))]
    )
    found: dict[str, list[tuple]] = {}
    for source, *values in table.select("_source", *shown).collect():
        kind = normalize_uri(source).removeprefix(f"{project.landing}/").split("/")[0]
        found.setdefault(kind, []).append(tuple(values))
    return found


def drain_landing(spark, folder, landing: Landing) -> Outcome:
    """Land everything, run, read the tables, land one good file more, run again."""
    project = Project(spark, folder, landing.source, landing.step)
    for kind in landing.kinds:
        for name, content in kind.all_files(landing.ending).items():
            project.land(f"{kind.id}/{name}", content)
    outcome = Outcome(project, project.run())
    if outcome.report.status == "done":
        rows = read_by_kind(project._table(project.paths.table("s")), project)
        refused = read_by_kind(project._table(project.paths.quarantine("s")), project)
        outcome.written = {
            kind: Counter(shorten(row) for (row,) in found) for kind, found in rows.items()
        }
        outcome.quarantined = {
            kind: Counter(
                (
                    shorten(row),
                    ": ".join(
                        [
                            *reasons,
                            *(
                                [detail]
                                if detail and (row or landing.ending in ("txt", "csv"))
                                else []
                            ),
                        ]
                    ),
                )
                for row, reasons, detail, _ in found
            )
            for kind, found in refused.items()
        }
        outcome.raw = {
            kind: [bytes(raw) for *_, raw in found if raw is not None]
            for kind, found in refused.items()
        }
        project.land(*landing.next_file)
        outcome.after = project.run()
    return outcome


@pytest.fixture(scope="session")
def drained(spark, tmp_path_factory):
    """Landing -> its outcome; each is run once."""
    outcomes: dict[str, Outcome] = {}

    def get(landing: Landing) -> Outcome:
        if landing.name not in outcomes:
            outcomes[landing.name] = drain_landing(
                spark, tmp_path_factory.mktemp(landing.name), landing
            )
        return outcomes[landing.name]

    return get
