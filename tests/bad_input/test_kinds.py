"""Every kind of bad input gets what the table in bad_input.md says, and nothing else.

Its rows are written, the others refused with their reason.
"""

import re

import pytest
from sluice.errors import ExitCode

from tests.bad_input.catalogue import LANDINGS
from tests.bad_input.csv_kinds import SHEETS
from tests.bad_input.json_kinds import LINES
from tests.bad_input.typed_kinds import REFUSED
from tests.spark.factories import Project

KINDS = [
    pytest.param(landing, kind, id=f"{landing.name}-{kind.id}")
    for landing in LANDINGS
    for kind in landing.kinds
    if kind.all_files("x")
]


@pytest.mark.parametrize(("landing", "kind"), KINDS)
def test_bad_input_gets_what_the_table_says(drained, landing, kind):
    outcome = drained(landing)
    assert (outcome.report.status, outcome.report.error) == ("done", None)
    assert outcome.written.get(kind.id, {}) == kind.written()
    assert outcome.quarantined.get(kind.id, {}) == kind.quarantined()
    assert kind.warning in "\n".join(outcome.report.steps[0].warnings)


@pytest.mark.parametrize("landing", LANDINGS, ids=lambda landing: landing.name)
def test_every_row_of_every_kind_has_one_fate_and_the_next_run_works(drained, landing):
    outcome, kinds = drained(landing), landing.kinds
    counts = outcome.report.counts
    assert counts.written == sum(kind.written().total() for kind in kinds)
    assert counts.quarantined == sum(kind.quarantined().total() for kind in kinds)
    assert counts.duplicate == sum(kind.duplicates for kind in kinds)
    assert (
        outcome.after.status,
        outcome.after.error,
        outcome.after.counts.read,
        outcome.after.counts.written,
    ) == ("done", None, 1, 1)


def test_bytes_that_are_no_text_are_kept_as_they_came(drained):
    assert drained(LINES).raw["invalid_utf8"] == ['{"id":3,"name":"Müller"}'.encode("latin-1")]
    assert drained(SHEETS).raw["csv_encoding"] == ["1,Mü,,".encode("latin-1")]


@pytest.fixture(scope="module")
def refusals(spark, tmp_path_factory):
    """Kind -> the report of a run that met it alone; the key None: the run after all of them."""
    project = Project(spark, tmp_path_factory.mktemp("refused"), REFUSED.source)
    reports = {}
    for kind in REFUSED.kinds:
        (path,) = [project.land(name, content) for name, content in kind.files.items()]
        reports[kind.id] = project.run()
        path.unlink()
    project.land(*REFUSED.next_file)
    return reports | {None: project.run()}


@pytest.mark.parametrize("kind", REFUSED.kinds, ids=lambda kind: kind.id)
def test_a_file_that_contradicts_the_schema_ends_the_run_with_one_clear_sentence(refusals, kind):
    report = refusals[kind.id]
    assert (report.status, report.exit_code, report.counts.written) == (
        "failed",
        ExitCode.TERMINAL,
        0,
    )
    assert re.search(kind.error, report.error), report.error
    assert "\n" not in report.error


def test_after_all_these_files_are_moved_away_the_next_run_works(refusals):
    assert (refusals[None].status, refusals[None].counts.written) == ("done", 1)
