"""The worked pipeline `retail` against plain Python: after each run the tables are what follows
from all files that landed, be it weeks, days or a return of a day long past."""

from collections import Counter

import pytest
from sluice.demo import worked
from sluice.demo.landing import Landing
from sluice.demo.retail import generate_landings
from sluice.demo.worked import Worked, find_file
from sluice.report.refreshed import RefreshReport
from sluice.spec import load_pipeline
from sluice.storage import Paths
from sluice.streaming.verifying import verify_groups

from tests.retail_files import find_real_files
from tests.spark.retail_truth import COLUMNS, GROUP, TABLES, Truth
from tests.spark.worked import Driven, drive


def real_landings() -> list[Landing]:
    """Some real days: those of a week together, and a Monday apart."""
    files = find_real_files()[:5]
    parts = files[:4], files[4:]
    return [
        Landing(part[0].stem, {f"retail/{file.name}": file.read_bytes() for file in part})
        for part in parts
    ]


SOURCES = {"generated": lambda: list(generate_landings())}
if find_real_files():
    SOURCES["real"] = real_landings


@pytest.fixture(scope="module", params=SOURCES)
def landings(request) -> list[Landing]:
    return SOURCES[request.param]()


@pytest.fixture(scope="module")
def truth(landings) -> Truth:
    return Truth.of(landings)


@pytest.fixture(scope="module")
def driven(spark, landings, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(worked.WORKED, "retail", Worked(lambda: iter(landings)))
        yield drive(spark, "retail", tmp_path_factory.mktemp("retail"))


def refresh_of(driven: Driven, step: str, run: int) -> RefreshReport:
    """What a run says of a step's groups."""
    (found,) = (one for one in driven.reports[run].steps if one.name == step)
    return found.refresh


def test_each_line_item_is_in_its_table_once_with_its_amount_to_the_penny(driven, truth):
    names = ("invoice", "product", "description", "quantity", "unit_price", "at", "customer")
    for run in truth.runs:
        assert driven.rows("sales", *names, "country", "amount", run=run) == Counter(
            (*sale, sale.amount) for sale in truth.sales[run]
        )
    copies = [counts.duplicate for counts in driven.counts("sales")]
    assert sum(copies) > 0
    assert all(counts.late == 0 for counts in driven.counts("sales"))


def test_what_no_rule_lets_in_is_in_quarantine_with_its_reason(driven, landings):
    if landings == SOURCES["generated"]():
        reasons = ("price_not_negative", "quantity_not_zero", "malformed")
        assert driven.reasons("sales") == dict.fromkeys(reasons, 3)
    else:
        assert sum(counts.quarantined for counts in driven.counts("sales")) == 0


@pytest.mark.parametrize("name", TABLES)
def test_after_each_run_a_table_is_what_follows_from_all_files_that_landed(driven, truth, name):
    for run in truth.runs:
        expected = truth.table(name, run)
        assert driven.rows(name, *COLUMNS[name], run=run) == expected
        assert len(expected) > 0


@pytest.mark.parametrize("name", TABLES)
def test_only_groups_with_new_rows_are_computed_and_only_those_that_changed_are_written(
    driven, truth, name
):
    for run in truth.runs:
        told, changed = refresh_of(driven, name, run), truth.changed(name, run)
        assert told.inserted + told.updated + told.deleted == len(changed)
        if run:
            assert (told.whole, told.touched) == ("", len(truth.touched(name, run)))
            assert written_by(driven, name, run) == changed
            every = {row[GROUP[name]] for row in truth.table(name, run)}
            assert 0 < len(changed) < len(every)


def written_by(driven: Driven, name: str, run: int) -> set:
    """The groups whose rows in the table are of a run."""
    group = COLUMNS[name][GROUP[name]]
    rows = driven.rows(name, group, "_run_id", run=run)
    return {found for found, writer in rows if writer == driven.reports[run].run_id}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_verifies_as_equal(spark, driven, name):
    pipeline = load_pipeline(find_file("retail"))
    (step,) = (step for step in pipeline.steps if step.name == name)
    paths = Paths.under(driven.root, pipeline.name)
    found = verify_groups(spark, pipeline, step, paths)
    assert (found.missing, found.surplus) == (0, 0)
    assert found.rows == driven.rows(name, "1").total() > 0


def test_a_return_of_a_day_long_past_changes_that_day_its_week_and_its_customer_alone(
    driven, truth, landings
):
    today = max(sale.day for sale in truth.new[1])
    past = {sale for sale in truth.new[1] if sale.day < today}
    # The real files hold what is of their day.
    assert len(past) == (2 if landings == SOURCES["generated"]() else 0)
    assert all(sale.amount < 0 for sale in past)
    assert written_by(driven, "daily", 1) == {today} | {sale.day for sale in past}
    weeks = {sale.week for sale in truth.new[1]}
    assert written_by(driven, "weekly", 1) == weeks
    # A return changes its week's ten only where its product is among them, or was.
    assert written_by(driven, "top_products", 1) <= weeks
    customers = {sale.customer for sale in truth.new[1]}
    assert written_by(driven, "repeat_customers", 1) <= customers


def test_the_page_quotes_the_report_of_a_run(driven, landings):
    assert driven.is_on_its_page == (landings == SOURCES["generated"]())
