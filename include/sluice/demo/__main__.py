"""Entry point of `make demo`: the orders by Airflow, or a worked pipeline by its name."""

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ..errors import SluiceError
from ..launch import divert_jvm_output
from ..report import Counts, RunReport, render_text, report_path
from ..report.summary import list_tables
from ..storage import PROJECT, Paths
from .drive import PIPELINE, DrainedDay, run_demo, shown
from .worked import find_file, run_worked

ROOT = PROJECT / ".sluice" / "demo"
ROOTS = PROJECT / ".sluice" / "demos"


def _print_reports(runs: list[DrainedDay]) -> None:
    for number, run in enumerate(runs, 1):
        print(f"\n──── run {number} of {len(runs)} {'─' * 60}")
        print(
            render_text(run.report)
            if run.report
            else f"{PIPELINE}: NOTHING NEW\nrun {run.run_id}\n{Counts().line}\n{run.said}"
        )


def _print_sum(counts: Iterable[Counts]) -> None:
    print("\nEvery row has exactly one fate:")
    total = Counts()
    for number, of_run in enumerate(counts, 1):
        print(f"  {number}. {of_run.line}")
        total += of_run
    print(f"  =  {total.line}")


def _print_places(tables: list[str], reports: Iterable[Path]) -> None:
    print("\nLook at")
    for table in tables:
        name = "quarantine" if table.endswith("__quarantine") else "table"
        print(f"  {name:<12} {shown(Path(table))}")
    for report in reports:
        print(f"  {'report':<12} {shown(report)}")


def _demonstrate_orders() -> bool:
    """The orders, drained by Airflow; true when every report balances."""
    runs = run_demo(ROOT, _say)
    _print_reports(runs)
    _print_sum(run.counts for run in runs)
    tables = [str(ROOT / "tables" / PIPELINE / (PIPELINE + end)) for end in ("", "__quarantine")]
    stored = Paths.under(ROOT, PIPELINE).reports()
    _print_places(tables, [report_path(stored, run.run_id, "html") for run in runs if run.report])
    print(f"  {'Airflow':<12} make ui ROOT={shown(ROOT)}")
    return all(run.report is None or run.report.counts.balanced for run in runs)


def _demonstrate(name: str) -> bool:
    """A worked pipeline, a run a landing; true when every report balances."""
    file, root = find_file(name), ROOTS / name
    print(f"{shown(file)}: its tables, landings and reports are in {shown(root)}", flush=True)
    with divert_jvm_output(lambda error: isinstance(error, SluiceError), _say):
        reports = run_worked(name, root, _say)
    _print_sum(report.counts for report in reports)
    stored = [*root.rglob(f"{name}_*.html")]  # those of trials lie below a root of each
    _print_places(_list_tables(reports), sorted(stored, key=lambda report: report.name))
    print(f"  {'pipeline':<12} {shown(file)}")
    return all(report.counts.balanced for report in reports)


def _list_tables(reports: list[RunReport]) -> list[str]:
    """The tables that the runs wrote, in the order of the steps."""
    steps = [step for report in reports for step in report.steps]
    found = (table for step in steps for table in list_tables(step))
    return list(dict.fromkeys(place for _, place, version in found if version is not None))


def _say(text: str) -> None:
    print(text, flush=True)


def main(arguments: list[str]) -> int:
    """Run the demo and print what happened; the exit code is 0 when every report balances."""
    began = time.monotonic()
    run: Callable[[], bool] = _demonstrate_orders
    if arguments:
        run = lambda: _demonstrate(arguments[0])  # noqa: E731
    try:
        balanced = run()
    except SluiceError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted: what was started has ended", file=sys.stderr)
        return 130
    print(f"\n{time.monotonic() - began:.0f} seconds")
    return 0 if balanced else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
