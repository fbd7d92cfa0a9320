"""Loads day after day, a run each, in one process, and keeps copies of the tables on the way.

Usage: grow.py SPEC FOLDER COUNT [COUNT...]; FOLDER has `days` and `landing`, the states after so
many days are put there as `after-COUNT`.
"""

import os
import shutil
import sys
from pathlib import Path

from sluice.runner import run_pipeline
from sluice.spec import RunRequest

from tests.spark.conftest import open_test_session


def main(spec: str, folder: Path, counts: set[int]) -> None:
    """Raises SystemExit where a run ends otherwise than well."""
    sessions = open_test_session(folder / "warehouse")
    next(sessions)  # which the runs share
    root = folder / "growing"
    for day, path in enumerate(sorted((folder / "days").iterdir())[: max(counts)], start=1):
        os.link(path, folder / "landing" / path.name)
        report = run_pipeline(RunRequest(pipeline=spec, root=str(root)))
        if report.status != "done":
            raise SystemExit(f"day {day}: {report.error}")
        if day in counts:
            shutil.copytree(root, folder / f"after-{day}")
    next(sessions, None)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), set(map(int, sys.argv[3:])))
