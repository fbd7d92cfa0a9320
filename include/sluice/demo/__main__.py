"""Entry point of `make demo`."""

import sys
import time

from ..errors import SluiceError
from ..report import Counts, render_text, report_path
from ..storage import PROJECT, Paths
from .drive import PIPELINE, DrainedDay, run_demo, shown

ROOT = PROJECT / ".sluice" / "demo"


def _print_reports(runs: list[DrainedDay]) -> None:
    for number, run in enumerate(runs, 1):
        print(f"\n──── run {number} of {len(runs)} {'─' * 60}")
        print(
            render_text(run.report)
            if run.report
            else f"{PIPELINE}: NOTHING NEW\nrun {run.run_id}\n{Counts().line}\n{run.said}"
        )


def _print_summary(runs: list[DrainedDay]) -> None:
    paths = Paths.under(ROOT, PIPELINE)
    print("\nEvery row has exactly one fate:")
    for number, run in enumerate(runs, 1):
        print(f"  {number}. {run.counts.line}")
    total = sum((run.counts for run in runs), Counts())
    print(f"  =  {total.line}")
    print("\nLook at")
    print(f"  table        {shown(ROOT / 'tables' / PIPELINE / PIPELINE)}")
    print(f"  quarantine   {shown(ROOT / 'tables' / PIPELINE / (PIPELINE + '__quarantine'))}")
    for run in runs:
        if run.report:
            print(
                "  report       "
                f"{report_path(shown(PROJECT / paths.reports()), run.run_id, 'html')}"
            )
    print(f"  Airflow      make ui ROOT={shown(ROOT)}")


def main() -> int:
    """Run the demo and print what happened; the exit code is 0 when every report balances."""
    began = time.monotonic()
    try:
        runs = run_demo(ROOT, lambda text: print(text, flush=True))
    except SluiceError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted: Airflow has ended", file=sys.stderr)
        return 130
    _print_reports(runs)
    _print_summary(runs)
    print(f"\n{time.monotonic() - began:.0f} seconds")
    return 0 if all(run.report is None or run.report.counts.balanced for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
