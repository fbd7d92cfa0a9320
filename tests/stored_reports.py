"""Reports and refused rows as runs leave them, for tests of what is shown of them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sluice.report.model import (
    BatchReport,
    Counts,
    Outcome,
    Refusal,
    RuleResult,
    RunReport,
    StepReport,
)
from sluice.report.store import write_report
from sluice.storage import Paths


def store_run(
    paths: Paths,
    run_id: str,
    started: datetime,
    counts: Counts | None = None,
    rule: str = "seconds_not_negative",
    **changes: Any,
) -> RunReport:
    """Write the report of a run with one rule, which failed where the counts have refused rows."""
    counts = counts or Counts(read=10, entered=10, made=10, written=9, quarantined=1)
    refused = counts.quarantined
    result = RuleResult(
        name=rule,
        type="expect_column_values_to_be_between",
        level="row",
        on_fail="quarantine",
        outcome=Outcome.FAILED if refused else Outcome.PASSED,
        evaluated=counts.read,
        unexpected=refused,
        samples=["-1"] if refused else [],
    )
    step = StepReport(
        name=paths.pipeline,
        target="t",
        quarantine=paths.quarantine(paths.pipeline),
        counts=counts,
        batches=[BatchReport(batch_id=0, counts=counts)],
        rules=[result],
        refusals=[Refusal(reason=rule, rows=refused, samples=["-1"])] if refused else [],
    )
    told = {
        "pipeline": paths.pipeline,
        "run_id": run_id,
        "started": started,
        "ended": started + timedelta(seconds=14),
        "status": "done",
        "steps": [step],
        "seconds_up": 14.2,
    }
    report = RunReport(**(told | changes))
    write_report(report, paths.reports())
    return report


def store_idle_run(paths: Paths, run_id: str, started: datetime) -> RunReport:
    """Write the report of a run that found nothing new."""
    return store_run(paths, run_id, started, status="nothing new", steps=[], seconds_up=0.3)


def store_history(paths: Paths, runs: int, newest: datetime) -> list[RunReport]:
    """Write the reports of hourly runs: of differing size, each fourth with refused rows, each
    fifth idle; the newest last."""
    reports = []
    for n in range(runs):
        run_id, started = f"hour_{n:04}", newest - timedelta(hours=runs - 1 - n)
        if n % 5 == 3:
            reports.append(store_idle_run(paths, run_id, started))
            continue
        refused, copies = (0 if n % 4 else 12 + n), 9 * (n % 7)
        written = 400 + 170 * (n % 6)
        came = written + refused + copies + 5
        counts = Counts(
            read=came,
            entered=came,
            made=came,
            written=written,
            quarantined=refused,
            duplicate=copies,
            late=5,
        )
        reports.append(store_run(paths, run_id, started, counts))
    return reports


def store_refused(
    paths: Paths, step: str, rows: Sequence[tuple[str, list[str], str | None]], run_id: str = "r"
) -> str:
    """Write a quarantine table as runs do, and return its path. `rows`: the record, why, detail."""
    import pyarrow as pa
    from deltalake import write_deltalake

    path, start = paths.quarantine(step), datetime(2026, 1, 1, tzinfo=UTC)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    table = pa.table(
        {
            "row": [row for row, _, _ in rows],
            "raw": pa.array([None] * len(rows), pa.binary()),
            "reasons": [reasons for _, reasons, _ in rows],
            "detail": pa.array([detail for _, _, detail in rows], pa.string()),
            "_event_time": pa.array([None] * len(rows), pa.timestamp("us", "UTC")),
            "_row_hash": [f"{n:064x}" for n in range(len(rows))],
            "_source": ["/landing/2026-01-01.json"] * len(rows),
            "_run_id": [run_id] * len(rows),
            "_batch_id": [0] * len(rows),
            "_batch_key": ["k"] * len(rows),
            "_ingested_at": [start + timedelta(seconds=n) for n in range(len(rows))],
        }
    )
    write_deltalake(path, table, mode="append")
    return path
