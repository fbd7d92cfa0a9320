"""Steps that do not wait for each other, one after the other and at once.

`python -m tests.benchmarks.together FOLDER --rows 20000 --steps 3 --rounds 3`
"""

import argparse
import json
from pathlib import Path
from statistics import median

import yaml

from tests.benchmarks.process import Cost, run_sluice


def write_pipeline(folder: Path, steps: int, at_once: int) -> Path:
    """Steps with dedup, each of a folder of its own."""
    schema = {"id": "bigint", "at": "timestamp", "amount": "double"}
    told = [
        {
            "name": f"s{n}",
            "source": {"path": str(folder / f"in{n}"), "format": "json", "schema": schema},
            "event_time": {"column": "at"},
            "dedup": {"keys": ["id"], "within": "1 day"},
        }
        for n in range(steps)
    ]
    name = f"together{at_once}"
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"name": name, "parallel_steps": at_once, "steps": told}))
    return file


def land(folder: Path, steps: int, rows: int) -> None:
    """The rows of each step, a file each."""
    for n in range(steps):
        place = folder / f"in{n}"
        place.mkdir(parents=True, exist_ok=True)
        lines = (
            json.dumps({"id": i, "at": f"2026-01-01T{i % 24:02}:00:00Z", "amount": i * 0.5})
            for i in range(rows)
        )
        (place / "0.json").write_text("\n".join(lines))


def main() -> None:
    """Print the median of each, interleaved, and what the worst and the best round took."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--rows", type=int, default=20_000)
    asked.add_argument("--steps", type=int, default=3)
    asked.add_argument("--rounds", type=int, default=3)
    options = asked.parse_args()
    land(options.folder, options.steps, options.rows)
    most = range(1, options.steps + 1)
    costs: dict[int, list[Cost]] = {at_once: [] for at_once in most}
    for number in range(options.rounds):
        for at_once in most:
            spec = write_pipeline(options.folder, options.steps, at_once)
            root = options.folder / f"root{number}"
            cost = run_sluice("run", spec, root, options.folder / "log")
            costs[at_once].append(cost)
    for at_once, found in costs.items():
        walls, cpus = [one.wall for one in found], [one.cpu for one in found]
        peak = max(one.peak for one in found) / 1e9
        print(
            f"{at_once} at once: {median(walls):.1f} s ({min(walls):.1f} to {max(walls):.1f}), "
            f"{median(cpus):.1f} CPU-seconds ({min(cpus):.1f} to {max(cpus):.1f}), {peak:.2f} GB"
        )


if __name__ == "__main__":
    main()
