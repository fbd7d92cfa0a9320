"""Runs every layer of tests in a process of its own, two at a time, and ends with one plain line.

A layer's processes share nothing: a Spark session, an Airflow database or an imported library of
one never reaches the next. Most of a short Spark run keeps one core busy, so the long layers that
share a session run beside those that start processes of their own.
"""

import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parent
LANES = (
    (("spark", "bad_input"),),
    (("unit",), ("golden",), ("dags",), ("e2e", "browser"), ("crash",)),
)
"""Two lanes of layers: the lanes run side by side, the layers of a lane one after the other."""
NOT_TESTS = {"benchmarks"}


def find_lanes() -> list[list[tuple[str, ...]]]:
    """The lanes, with the layers whose folders hold tests.

    Raises SystemExit for a folder of tests that belongs to no layer.
    """
    there = {
        path.relative_to(TESTS).parts[0]
        for path in TESTS.rglob("test_*.py")
        if path.parent != TESTS
    } - NOT_TESTS
    unknown = there - {folder for lane in LANES for layer in lane for folder in layer}
    if unknown:
        raise SystemExit(
            f"tests/{', tests/'.join(sorted(unknown))}: no layer runs these tests; "
            "add them to LANES in tests/run.py"
        )
    return [
        [
            folders
            for layer in lane
            if (folders := tuple(folder for folder in layer if folder in there))
        ]
        for lane in LANES
    ]


def run_layer(folders: tuple[str, ...], arguments: list[str]) -> tuple[int, Counter]:
    """Run one layer and print what it said as one piece.

    Returns pytest's exit code, and how many tests ended how.
    """
    name = " + ".join(folders)
    print(f"──── {name}: started", flush=True)
    with tempfile.TemporaryDirectory(prefix="sluice-tests-") as scratch:
        results = Path(scratch) / "results.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            f"--junitxml={results}",
            *(str(TESTS / folder) for folder in folders),
            *arguments,
        ]
        ended = subprocess.run(
            command,
            cwd=TESTS.parent,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        missing = (
            ""
            if results.exists()
            else f"pytest ended with exit code {ended.returncode} and left no results: "
            f"{name} counts as one error\n"
        )
        print(f"\n──── {name}\n{ended.stdout}{missing}", flush=True)
        return ended.returncode, count_outcomes(results)


def run_lane(layers: list[tuple[str, ...]], arguments: list[str]) -> list[tuple[int, Counter]]:
    """Run the layers of a lane, also after one failed."""
    return [run_layer(folders, arguments) for folders in layers]


def count_outcomes(results: Path) -> Counter:
    """passed, failed, errors and skipped of a JUnit file; one error where pytest left none."""
    if not results.exists():
        return Counter(errors=1)
    suite = next(ElementTree.parse(results).iter("testsuite"))  # noqa: S314 (written by our own pytest)
    counts = Counter(
        failed=int(suite.get("failures")),
        errors=int(suite.get("errors")),
        skipped=int(suite.get("skipped")),
    )
    counts["passed"] = int(suite.get("tests")) - counts.total()
    return counts


def main(arguments: list[str]) -> int:
    """Run all layers, also after one failed; arguments are handed to each pytest."""
    began = time.monotonic()
    lanes = find_lanes()
    with ThreadPoolExecutor(len(lanes)) as pool:
        ended = [
            result
            for results in pool.map(run_lane, lanes, [arguments] * len(lanes))
            for result in results
        ]
    total = sum((counts for _, counts in ended), Counter())
    worst = next((code for code, _ in ended if code), 0)
    shown = ", ".join(
        f"{total[name]} {name}" for name in ("failed", "passed", "skipped", "errors") if total[name]
    )
    print(f"\n{shown or 'no tests ran'} in {time.monotonic() - began:.2f}s")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
