"""What each rule of include/docs/rules.md costs, in CPU-seconds of the whole process tree.

Row-level ones: the pass that counts a batch, with one rule and with none, in turns; the first turn,
in which Spark makes and compiles the code, is not counted. Table-level ones: the import, and whole
runs. `python -m tests.benchmarks.rule_costs` prints the figures.
"""

import json
import random
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

import psutil
import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sluice.launch.settings import spark_settings
from sluice.quality import RowRule, compile_rules, validate_table
from sluice.quality.row_rules import ROW_TYPES
from sluice.spark.columns import DEFECT, ENTERED, RAW, RESCUED, SOURCE, STAGE
from sluice.spark.session import open_session
from sluice.spec import RuleSpec, Step, load_pipeline
from sluice.storage import PROJECT
from sluice.streaming.classify import judge, mark_time
from sluice.streaming.survey import Lookout, take_survey

from tests.benchmarks.process import run_measured, run_sluice

PAGE = PROJECT / "include" / "docs" / "rules.md"
ROWS, SMALL, TURNS = 2_000_000, 10_000, 2
COLUMNS = {
    "order_id": "concat('o', id)",
    "status": "element_at(array('new', 'paid', 'sent'), cast(id % 3 + 1 as int))",
    "day": "date_format(date_add(date'2026-01-01', cast(id % 300 as int)), 'yyyy-MM-dd')",
    "note": "if(id % 3 = 0, null, repeat('note ', cast(id % 12 as int)))",
    "price": "(id % 49900) / 100 + 0.01",
    "paid": "(id % 49900) / 100 + 0.01",
    "quantity": "id % 20",
    "at": "timestamp_seconds(1767225600 + id % 86400)",
}
"""Orders that keep every rule, a third of the notes NULL."""


def write_spec(folder: Path, rules: list[dict]) -> Path:
    """The page's own pipeline with some of its rules."""
    (text,) = re.findall(r"```yaml\n(name: .+?)```", PAGE.read_text(), re.S)
    pipeline = yaml.safe_load(text)
    (step,) = pipeline["steps"]
    step["rules"], step["source"]["path"] = rules, str(folder / "landing")
    path = folder / "orders.yaml"
    path.write_text(yaml.safe_dump(pipeline, sort_keys=False))
    return path


def page_rules() -> list[dict]:
    """The rules of the page."""
    (text,) = re.findall(r"```yaml\n(name: .+?)```", PAGE.read_text(), re.S)
    return yaml.safe_load(text)["steps"][0]["rules"]


@contextmanager
def counting(spent: list[float]) -> Iterator[None]:
    """Append the CPU-seconds that this process and its JVM take for a block."""
    before = _cpu()
    yield
    spent.append(_cpu() - before)


def _cpu() -> float:
    tree = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(p.cpu_times().user + p.cpu_times().system for p in tree)


def survey(frame: DataFrame, step: Step, rules: list[RowRule]) -> None:
    """The pass that counts a batch, as a run does it."""
    judged = judge(mark_time(frame, step, frame.schema), step, frame.schema, rules)
    seen = take_survey(judged, Lookout(rules, {}))
    assert seen.good == ROWS, f"{seen.refused} rows were refused"


def measure_rows(spark: SparkSession, step: Step, data: Path) -> dict[str, list[float]]:
    """CPU-seconds of the pass by rule type; under the empty name without a rule, under `all` with
    all of them."""
    rows = spark.range(ROWS).selectExpr(*(f"{value} AS {c}" for c, value in COLUMNS.items()))
    rows.write.parquet(str(data))
    frame = spark.read.parquet(str(data))
    rules, _ = compile_rules(step.rules, {f.name: f.dataType for f in frame.schema})
    none = F.lit(None).cast("string")
    frame = frame.select("*", *(none.alias(c) for c in (RAW, DEFECT, RESCUED, SOURCE)))
    frame = frame.withColumn(STAGE, F.lit(ENTERED))
    spent: dict[str, list[float]] = defaultdict(list)
    for turn in range(TURNS + 1):
        for number, rule in enumerate(rules):
            if number % 4 == 0:
                with counting(spent[""]):
                    survey(frame, step, [])
            with counting(spent[rule.spec.type]):
                survey(frame, step, [rule])
        with counting(spent["all"]):
            survey(frame, step, rules)
        if not turn:
            spent.clear()
    return spent


def count_jobs(frame: DataFrame, rules: list[RuleSpec]) -> int:
    """Spark jobs that Great Expectations runs for these rules."""
    context = frame.sparkSession.sparkContext
    group = " ".join(rule.type for rule in rules)
    context.setJobGroup(group, group)
    validate_table(frame.limit(SMALL).persist(), rules)
    return len(context.statusTracker().getJobIdsForGroup(group))


def land(folder: Path) -> None:
    """A small file of orders."""
    draw, landing = random.Random(1), folder / "landing"
    landing.mkdir()
    with (landing / "orders.json").open("w") as file:
        for number in range(SMALL):
            price, second = round(draw.uniform(5, 400), 2), number % 60
            order = {"order_id": f"o{number}", "status": "new", "day": "2026-01-01"}
            order |= {"price": price, "paid": price, "quantity": 1}
            file.write(json.dumps(order | {"at": f"2026-01-01T10:00:{second:02d}Z"}) + "\n")


def measure_runs(folder: Path, choices: dict[str, list[dict]]) -> dict[str, list[float]]:
    """CPU-seconds of whole runs over a small file, by what rules they have."""
    spent: dict[str, list[float]] = defaultdict(list)
    log = folder / "output.log"
    for turn in range(TURNS):
        for name, rules in choices.items():
            root = folder / f"{turn} {name}"
            spent[name].append(run_sluice("run", write_spec(folder, rules), root, log).cpu)
    return spent


def tell(spent: dict[str, list[float]], base: str, per: float, unit: str) -> None:
    """Print a table: CPU-seconds, and what is beyond the base."""
    floor = mean(spent[base])
    print(f"\n| | CPU-seconds {unit} | beyond `{base or 'no rule'}` | turns |\n|---|---|---|---|")
    for name, values in spent.items():
        turns = ", ".join(f"{value / per:.2f}" for value in values)
        print(
            f"| `{name or 'no rule'}` | {mean(values) / per:.2f} | "
            f"{(mean(values) - floor) / per:+.2f} | {turns} |"
        )


def tell_passes(folder: Path) -> None:
    """Measure the row-level rules, and count the jobs of the others."""
    pipeline = load_pipeline(write_spec(folder, page_rules()))
    (step,) = pipeline.steps
    with open_session(spark_settings(pipeline, 10**9, root=str(folder))) as spark:
        tell(measure_rows(spark, step, folder / "rows"), "", ROWS / 1e6, "a million rows")
        frame = spark.read.parquet(str(folder / "rows"))
        _, table = compile_rules(step.rules, {f.name: f.dataType for f in frame.schema})
        for rules in (*([rule] for rule in table), table):
            print(f"{' '.join(rule.type for rule in rules)}: {count_jobs(frame, rules)} Spark jobs")


def tell_import(folder: Path) -> None:
    """Measure what the first table-level rule costs before it looks at a row."""
    spent: dict[str, list[float]] = defaultdict(list)
    for _ in range(TURNS):
        for code in ("0", "import great_expectations.expectations"):
            cost = run_measured([sys.executable, "-c", code], folder / "output.log")
            spent[f"python -c '{code}'"].append(cost.cpu)
    tell(spent, "python -c '0'", 1, "a process")


def tell_runs(folder: Path) -> None:
    """Measure runs with table-level rules, and without any."""
    land(folder)
    warn = [r | {"on_fail": "warn"} for r in page_rules() if r["type"] not in ROW_TYPES]
    choices = {"no rules": [], "1 table-level": warn[:1], f"{len(warn)} table-level": warn}
    tell(measure_runs(folder, choices), "no rules", 1, f"a run of {SMALL:,} orders")


def main(parts: list[str]) -> None:
    """Measure and print. Args: parts: `passes`, `import` and `runs`, all without any."""
    measures = {"passes": tell_passes, "import": tell_import, "runs": tell_runs}
    for part in parts or measures:
        with tempfile.TemporaryDirectory() as name:
            measures[part](Path(name))


if __name__ == "__main__":
    main(sys.argv[1:])
