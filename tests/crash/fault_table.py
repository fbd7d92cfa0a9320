"""Plays every fault and writes what became of each run into include/docs/fault_points.md.

`SLUICE_LONG=1 python -m tests.crash.fault_table`
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from sluice.storage import PROJECT

from tests.crash.fault_points import CUTS, FAULTS, OPERATIONS

PAGE = PROJECT / "include" / "docs" / "fault_points.md"
INTRODUCTION = """# Where a run can die

A run leaves its traces on disk one operation after the other. The test behind this page \
(`tests/crash/test_fault_points.py`) cuts the power before and after each
of them, and lets each meet a full disk, an I/O error and a power cut that leaves half of the \
bytes. After each fault one more file lands and the next run starts;
after the last fault, runs go on until nothing is new. Then the target, quarantine and late tables \
(as multisets), the sum of all reports and, where files that were read are cleaned, what lies in \
the landing folder and the archive must equal
those of a run that met no fault. The table says how the run ended that met the fault: *cut off* \
wrote nothing more; *went on* coped with it; *exit code 5* is "worth
another try" and came with an error that says so. `SLUICE_LONG=1 python -m \
tests.crash.fault_table` plays all of it and writes this page.
"""


def play() -> tuple[int, dict[tuple[str, str], str]]:
    """Run the test; its exit code, and how each run ended, by operation and moment."""
    with tempfile.TemporaryDirectory() as scratch:
        results = Path(scratch) / "results.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            f"--junitxml={results}",
            str(Path(__file__).with_name("test_fault_points.py")),
        ]
        code = subprocess.run(command, cwd=PROJECT, check=False).returncode
        found = ElementTree.parse(results).iter("property")  # noqa: S314 (written by our own pytest)
        outcomes = [
            outcome
            for entry in found
            if entry.get("name") == "outcomes"
            for outcome in json.loads(entry.get("value"))
        ]
    return code, {(operation, moment): ended for operation, moment, ended in outcomes}


def render(ended: dict[tuple[str, str], str]) -> str:
    """The page."""
    moments = (CUTS[0], CUTS[1], *FAULTS)
    lines = [
        f"| durable operation | written by | {' | '.join(moments)} |",
        "|---" * (2 + len(moments)) + "|",
    ]
    for operation in OPERATIONS:
        cells = [
            ended.get(
                (operation.name, moment), "not played" if moment in operation.moments else "–"
            )
            for moment in moments
        ]
        lines.append(f"| {operation.name} | {operation.side} | {' | '.join(cells)} |")
    return INTRODUCTION + "\n" + "\n".join(lines) + "\n"


def main() -> int:
    """Play, write, and end with the test's exit code; a failed test writes no page."""
    code, ended = play()
    if code == 0:
        PAGE.write_text(render(ended), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
