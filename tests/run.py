"""Runs every layer of tests in a process of its own and ends with one plain line, as pytest does.

A layer's processes share nothing: a Spark session, an Airflow database or an imported library of one never reaches the next.
"""

import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parent
LAYERS = (("unit",), ("golden",), ("spark", "bad_input"), ("pipelines",), ("dags",), ("crash",), ("e2e", "browser"))
NOT_TESTS = {"benchmarks"}


def find_layers() -> list[tuple[str, ...]]:
    """The layers whose folders hold tests. Raises SystemExit for a folder of tests that belongs to no layer."""
    there = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py") if path.parent != TESTS} - NOT_TESTS
    unknown = there - {folder for layer in LAYERS for folder in layer}
    if unknown:
        raise SystemExit(f"tests/{', tests/'.join(sorted(unknown))}: no layer runs these tests; add them to LAYERS in tests/run.py")
    return [folders for layer in LAYERS if (folders := tuple(folder for folder in layer if folder in there))]


def run_layer(folders: tuple[str, ...], arguments: list[str]) -> tuple[int, Counter]:
    """Run one layer; returns pytest's exit code and how many tests ended how."""
    print(f"\n──── {' + '.join(folders)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="sluice-tests-") as scratch:
        results = Path(scratch) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={results}", *(str(TESTS / folder) for folder in folders), *arguments]
        code = subprocess.run(command, cwd=TESTS.parent, check=False).returncode
        if not results.exists():
            print(f"pytest ended with exit code {code} and left no results: {' + '.join(folders)} counts as one error", flush=True)
        return code, count_outcomes(results)


def count_outcomes(results: Path) -> Counter:
    """passed, failed, errors and skipped of a JUnit file; one error where pytest left none."""
    if not results.exists():
        return Counter(errors=1)
    suite = next(ElementTree.parse(results).iter("testsuite"))  # noqa: S314 (written by our own pytest)
    counts = Counter(failed=int(suite.get("failures")), errors=int(suite.get("errors")), skipped=int(suite.get("skipped")))
    counts["passed"] = int(suite.get("tests")) - counts.total()
    return counts


def main(arguments: list[str]) -> int:
    """Run all layers, also after one failed; arguments are handed to each pytest."""
    began = time.monotonic()
    total: Counter = Counter()
    worst = 0
    for folders in find_layers():
        code, counts = run_layer(folders, arguments)
        total += counts
        worst = worst or code
    shown = ", ".join(f"{total[name]} {name}" for name in ("failed", "passed", "skipped", "errors") if total[name])
    print(f"\n{shown or 'no tests ran'} in {time.monotonic() - began:.2f}s")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
