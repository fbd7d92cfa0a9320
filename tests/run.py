"""Runs the linters and every layer of tests, and ends with one plain line, as pytest does.

A layer's processes share nothing: a Spark session, an Airflow database or an imported library of
one never reaches the next. Most of a short Spark run keeps one core busy, and tests of Airflow and
of servers often wait: so some layers run side by side, the longest begun first.
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
GATHERED = (
    "spark/test_custom_state.py",
    "spark/test_groups_fit.py",
    "spark/test_joins.py",
    "spark/test_pruning.py",
    "spark/test_redo.py",
    "spark/test_refresh*.py",
    "spark/test_verify*.py",
    "spark/test_window_groups.py",
    "spark/test_windows*.py",
    "spark/test_worked_*.py",
)
"""The tests of a layer about steps that gather rows, in state or by `groups`: they take more than
half of its time, and a process of their own has them, beside the rest."""
APART = {GATHERED: "gathered"}
"""Tests that have a process of their own, and what it is called."""
LAYERS = (
    GATHERED,
    ("spark",),
    ("crash",),
    ("e2e", "browser"),
    ("servers", "bad_input"),
    ("unit",),
    ("dags",),
    ("golden",),
    ("pipelines",),
)
"""The layers, about the longest first: what is begun last is short, so that all end at about the
same time. `pipelines` holds the tests that `sluice new` writes; a layer without tests is left
out."""
AT_ONCE = 3
"""Layers that run side by side on two cores: some of them wait."""
NOT_TESTS = {"benchmarks"}


def find_layers(tests: Path = TESTS) -> list[tuple[str, ...]]:
    """The layers, with their folders that hold tests.

    Raises SystemExit for a folder of tests that belongs to no layer.
    """
    there = {
        path.relative_to(tests).parts[0]
        for path in tests.rglob("test_*.py")
        if path.parent != tests
    } - NOT_TESTS
    unknown = there - {_home(folder) for layer in LAYERS for folder in layer}
    if unknown:
        folders = ", tests/".join(sorted(unknown))
        raise SystemExit(
            f"tests/{folders}: no layer runs these tests; add them to LAYERS in tests/run.py"
        )
    meant = (tuple(folder for folder in layer if _home(folder) in there) for layer in LAYERS)
    return [folders for folders in meant if folders]


def _home(folder: str) -> str:
    """The folder of a layer, or of some of its files."""
    return folder.partition("/")[0]


def list_arguments(folders: tuple[str, ...], tests: Path = TESTS) -> list[str]:
    """What pytest is given for a layer: its folders, or those of its files that are meant."""
    meant = [path for folder in folders for path in sorted(tests.glob(folder))]
    elsewhere = (name for names in APART for name in names)
    apart = [f"--ignore-glob={tests / name}" for name in elsewhere if _home(name) in folders]
    return [*map(str, meant), *apart]


def run_layer(folders: tuple[str, ...], arguments: list[str]) -> tuple[int, Counter]:
    """Run one layer and print what it said as one piece.

    Returns pytest's exit code and how many tests ended how.
    """
    name = APART.get(folders) or " + ".join(folders)
    with tempfile.TemporaryDirectory(prefix="sluice-tests-") as scratch:
        results = Path(scratch) / "results.xml"
        pytest = [sys.executable, "-m", "pytest", "-q", "--durations=12", f"--junitxml={results}"]
        code = run_aloud(name, [*pytest, *list_arguments(folders), *arguments])
        if not results.exists():
            print(f"pytest left no results: {name} counts as one error\n", flush=True)
        return code, count_outcomes(results)


def run_lint() -> tuple[int, Counter]:
    """Run `make lint`, which counts as one test."""
    code = run_aloud("lint", ["make", "-s", "lint"])
    return code, Counter(failed=1) if code else Counter(passed=1)


def run_aloud(name: str, command: list[str]) -> int:
    """Run a command in the project's folder, then print what it said; returns its exit code."""
    print(f"──── {name}: started", flush=True)
    ended = subprocess.run(
        command,
        cwd=TESTS.parent,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    print(f"\n──── {name}: exit code {ended.returncode}\n{ended.stdout}", flush=True)
    return ended.returncode


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
    """Run the linters and all layers, also after one failed; arguments are for each pytest."""
    began = time.monotonic()
    layers = find_layers()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(run_lint)]
        running += [pool.submit(run_layer, folders, arguments) for folders in layers]
        ended = [layer.result() for layer in running]
    total = sum((counts for _, counts in ended), Counter())
    worst = next((code for code, _ in ended if code), 0)
    shown = ", ".join(
        f"{total[name]} {name}" for name in ("failed", "passed", "skipped", "errors") if total[name]
    )
    print(f"\n{shown or 'no tests ran'} in {time.monotonic() - began:.2f}s")
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
