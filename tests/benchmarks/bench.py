"""What runs cost beside hand-written PySpark and DuckDB. `make bench SIZE=3 ROWS=3000000`.

CPU-seconds of whole process trees, interleaved, on identical bytes: two cores of a machine that
others use as well differ from hour to hour by a third, the ratio of two runs side by side does not.
Tuned by hand is the strongest job that a person who knows every setting would write (`plain_*.py`):
RocksDB, changelog, as many partitions as cores, no rules and no report.
"""

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyspark
from sluice.setup.class_archive import class_archive_path

from tests.benchmarks.cluster import cluster_runs
from tests.benchmarks.comparison import Comparison, Figure, measure, to_json, to_table
from tests.benchmarks.first_load import first_loads
from tests.benchmarks.gold import gold_runs
from tests.benchmarks.growth import grown_runs
from tests.benchmarks.incremental import daily_runs
from tests.benchmarks.retail import small_runs
from tests.benchmarks.state import state_runs
from tests.benchmarks.topic import topic_loads

GROUPS = {
    "small": ("P1", "P2", "one day", "all days", "recovery"),
    "load": ("P3", "P4", "P4 flags", "P4n", "P4c csv", "P4c parquet", "P5", "P6", "P7", "P7b"),
    "topic": ("P4c append", "P4c dedup"),
    "cluster": ("P13",),
    "days": ("P10",),
    "state": ("S1", "S2", "S2 flags"),
    "gold": ("G1", "G1 flags", "G2"),
    "growth": ("P8 idle", "P8 run", "P8 ordered", "P9 days", "P9 runs"),
}
"""What is compared, by its names."""
USUAL = ("small", "load", "topic", "cluster")
"""What is measured where nobody names a group; the others take long."""


def choose(groups: str, only: str) -> tuple[list[str], set[str]]:
    """The groups that are measured and the names in them: all of the named groups, or the named
    comparisons wherever they are.

    Raises SystemExit for a name that is not there.
    """
    names = set(filter(None, only.split(",")))
    asked = list(filter(None, groups.split(",")))
    if unknown := sorted(set(asked) - GROUPS.keys()):
        raise SystemExit(f"no group {', '.join(unknown)}; there are {', '.join(GROUPS)}")
    if unknown := sorted(names - {name for group in GROUPS.values() for name in group}):
        there = "; ".join(f"{group}: {', '.join(names)}" for group, names in GROUPS.items())
        raise SystemExit(f"no comparison {', '.join(unknown)}; there are {there}")
    if names:
        asked = [group for group in asked or GROUPS if names & {*GROUPS[group]}]
        return asked, names
    asked = asked or list(USUAL)
    return asked, {name for group in asked for name in GROUPS[group]}


def list_comparisons(
    groups: list[str], chosen: argparse.Namespace, scratch: Path
) -> Iterator[Comparison]:
    """What is compared, group by group; each makes its data when its turn comes."""
    for group in groups:
        folder = scratch / group
        folder.mkdir()
        if group == "small":
            yield from small_runs(folder)
        elif group == "load":
            yield from first_loads(folder, chosen.rows)
        elif group == "topic":
            yield from topic_loads(folder, chosen.rows)
        elif group == "cluster":
            yield from cluster_runs(folder)
        elif group == "state":
            yield from state_runs(folder, chosen.rows)
        elif group == "gold":
            yield from gold_runs(folder, chosen.rows)
        elif group == "days":
            yield from daily_runs(folder, chosen.rows)
        else:
            yield from grown_runs(folder, chosen.files, chosen.runs)


def main() -> None:
    """Measure, print a line each, and write them all as JSON; or print a file of them as a table.

    Raises SystemExit for a group that is not there.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=1, help="interleaved pairs of each")
    parser.add_argument("--rows", type=int, default=500_000, help="of a first load")
    parser.add_argument("--files", type=int, default=100_000, help="of growth: in a folder")
    parser.add_argument("--runs", type=int, default=1_000, help="of growth: one after another")
    parser.add_argument(
        "--groups", default="", help=f"of {', '.join(GROUPS)}; {', '.join(USUAL)} without --only"
    )
    parser.add_argument("--only", default="", help="names, as P4,P7; all of the groups without")
    parser.add_argument("--json", type=Path, help="where the figures are written")
    parser.add_argument("--table", type=Path, help="print a file of figures as Markdown instead")
    chosen = parser.parse_args()
    if chosen.table:
        print(to_table(json.loads(chosen.table.read_text())))
        return
    groups, names = choose(chosen.groups, chosen.only)
    machine = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "spark": pyspark.__version__,
        "class archive": class_archive_path().exists(),
        "rows": chosen.rows,
        "pairs": chosen.size,
    }
    if not machine["class archive"]:
        print("this Java has no class archive: `python -m sluice.warmup` builds it", flush=True)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        for comparison in list_comparisons(groups, chosen, Path(folder)):
            if comparison.name not in names:
                continue
            figures.append(measure(comparison, chosen.size))
            print(figures[-1].line, flush=True)
            if chosen.json:  # after each, so that what was measured is not lost
                text = json.dumps(to_json(figures, machine), indent=1, ensure_ascii=False)
                chosen.json.write_text(text + "\n")
            if len(figures) == len(names):
                break  # what comes behind it need not be made


if __name__ == "__main__":
    main()
