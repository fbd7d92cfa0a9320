"""The retail pipeline over daily files, in one run and as they arrive, against plain Python."""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from sluice.report import Counts
from sluice.runner import run_pipeline
from sluice.spec import SYSTEM_COLUMNS, RunRequest
from sluice.storage import PIPELINES

from tests.retail_files import Expected, count_by_hand, find_real_files, generate_files

pytestmark = pytest.mark.usefixtures("compiled")

DAYS = int(os.environ.get("SLUICE_DAYS", "50"))
"""Files that are taken, a day each: 200 are all of the real ones."""
CHUNKS = (10, 7, 1, 25, None)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    return find_real_files()[:DAYS] or generate_files(
        tmp_path_factory.mktemp("retail") / "files", days=DAYS, rows=40
    )


@pytest.fixture(scope="module")
def expected(files) -> Expected:
    return count_by_hand(files)


def drain_in_chunks(
    files: list[Path], chunks: tuple, folder: Path, monkeypatch
) -> tuple[Path, list]:
    """Land the files chunk by chunk, one run each; returns the root and the reports."""
    landing, root, left, reports = folder / "landing", folder / "root", list(files), []
    landing.mkdir(parents=True)
    monkeypatch.setenv("RETAIL_LANDING", str(landing))
    for size in chunks:
        arrived, left = (left, []) if size is None else (left[:size], left[size:])
        for file in arrived:
            shutil.copy2(file, landing)
        reports.append(
            run_pipeline(RunRequest(pipeline=str(PIPELINES / "retail.yaml"), root=str(root)))
        )
        assert reports[-1].status == "done", reports[-1].error
        reports[-1].check()
    return root, reports


def read_items(spark, root: Path) -> Counter:
    """The table's line items, written the way the files write them."""
    rows = (
        spark.read.format("delta")
        .load(f"{root}/tables/retail/line_items")
        .drop(*SYSTEM_COLUMNS, "_rescued")
    )
    return Counter(
        (
            r.InvoiceNo,
            r.StockCode,
            r.Description or "",
            str(r.Quantity),
            r.InvoiceDate.strftime("%Y-%m-%d %H:%M:%S"),
            r.UnitPrice,
            r.CustomerID,
            r.Country,
        )
        for r in rows.collect()
    )


def as_typed(items: Counter) -> Counter:
    """The raw values with price and customer as numbers, for comparing."""
    return Counter(
        (i, s, d, q, t, float(p), int(float(c)) if c else None, k)
        for i, s, d, q, t, p, c, k in items.elements()
    )


def test_one_run_and_five_runs_give_the_tables_and_totals_that_plain_python_gives(
    spark, files, expected, tmp_path, monkeypatch
):
    tables, quarantines = [], []
    for name, chunks in (("one", (None,)), ("five", CHUNKS)):
        root, reports = drain_in_chunks(files, chunks, tmp_path / name, monkeypatch)
        counts = sum((report.counts for report in reports), Counts())
        assert (counts.read, counts.written, counts.quarantined, counts.duplicate, counts.late) == (
            expected.read,
            expected.written,
            expected.quarantined,
            expected.duplicate,
            0,
        )
        missing = [
            sum(
                r.unexpected
                for report in reports
                for r in report.steps[0].rules
                if r.name == "customer_known"
            )
        ]
        assert missing == [expected.without_customer]
        tables.append(read_items(spark, root))
        refused = (
            spark.read.format("delta")
            .load(f"{root}/tables/retail/line_items__quarantine")
            .select("row", "reasons")
            .collect()
        )
        quarantines.append(Counter((r.row, tuple(r.reasons)) for r in refused))
    assert tables[0] == tables[1] == as_typed(expected.items)
    assert quarantines[0] == quarantines[1]
