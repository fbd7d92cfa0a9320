"""Builds the JVM's class archive, which halves the CPU time in which a run starts.

Runs a small pipeline of both text formats twice (a new table, then an old one), so that the classes
of an ordinary run are in the archive.
"""

import json
import os
import tempfile
from pathlib import Path

from ..errors import SluiceError
from ..launch import spark_settings
from ..runner import run_pipeline
from ..setup.class_archive import class_archive_path
from ..spec import RunRequest, load_pipeline

_DUMP_SECONDS = 180
_PIPELINE = """
name: warm
spark: {spark}
steps:
  - name: lines
    source:
      kind: files
      path: {landing}
      pattern: "*.jsonl"
      format: json
      schema: {{id: string, at: timestamp, amount: double, tags: array<string>}}
    transform: warm.sql
    event_time: {{column: at}}
    dedup: {{keys: [id], within: 2 days}}
    rules:
      - type: expect_column_values_to_be_between
        kwargs: {{column: amount, min_value: 0}}
        on_fail: quarantine
      - type: expect_column_values_to_match_regex
        kwargs: {{column: id, regex: "^o"}}
        on_fail: warn
      - type: expect_column_values_to_not_be_null
        kwargs: {{column: id}}
        on_fail: stop
      - type: expect_table_row_count_to_be_between
        kwargs: {{min_value: 1}}
        on_fail: warn
    sink: {{kind: delta, cluster_by: [at]}}
  - name: table
    source:
      kind: files
      path: {landing}
      pattern: "*.csv"
      format: csv
      schema: {{id: string, at: timestamp, amount: double}}
    event_time: {{column: at}}
    dedup: {{keys: "*", within: 2 days}}
    rules:
      - type: expect_column_values_to_not_be_null
        kwargs: {{column: id}}
        on_fail: quarantine
"""


def build_archive() -> Path | None:
    """Build the archive unless it is there.

    Returns its path, or None when this JVM makes none; then runs only start slower.
    """
    target = class_archive_path()
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(f".{os.getpid()}.tmp")
    try:
        with tempfile.TemporaryDirectory(prefix="sluice-warm-") as folder:
            _run_twice(Path(folder), unfinished)
        if not unfinished.exists():
            return None
        unfinished.replace(target)  # readers see a whole archive or none
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def _run_twice(folder: Path, archive: Path) -> None:
    """Run the small pipeline over two landings in one JVM, which writes the archive as it ends."""
    from ..spark.jvm import end_jvm  # pyspark: not where the archive is there already

    landing = folder / "landing"
    landing.mkdir()
    (folder / "warm.sql").write_text(
        "SELECT id, at, amount, size(tags) AS tag_count FROM source WHERE amount IS NOT NULL"
    )
    file = folder / "warm.yaml"
    file.write_text(_PIPELINE.format(landing=landing, spark="{}"))
    settings = spark_settings(load_pipeline(file), 0, root=str(folder / "root"))
    options = f"{settings['spark.driver.extraJavaOptions']} -XX:ArchiveClassesAtExit={archive}"
    file.write_text(
        _PIPELINE.format(
            landing=landing, spark=json.dumps({"spark.driver.extraJavaOptions": options})
        )
    )
    try:
        for day in (1, 2):
            _land(landing, day)
            report = run_pipeline(RunRequest(pipeline=str(file), root=str(folder / "root")))
            if report.error:
                raise SluiceError(
                    f"the warm-up run failed: {report.error}",
                    where="class archive",
                    do="`sluice validate --spark` shows whether Spark works here",
                )
    finally:
        end_jvm(_DUMP_SECONDS)


def _land(landing: Path, day: int) -> None:
    rows = [
        {
            "id": f"o{day}-{n % 40}",
            "at": f"2026-01-0{day}T00:00:{n % 60:02}Z",
            "amount": n - 2.0,
            "tags": ["a"],
        }
        for n in range(50)
    ]
    lines = [json.dumps(row) for row in rows] + ["{not json"]
    (landing / f"{day}.jsonl").write_text("\n".join(lines) + "\n")
    (landing / f"{day}.csv").write_text(
        "id,at,amount\n"
        + "".join(f"{row['id']},{row['at']},{row['amount']}\n" for row in rows)
        + ",x\n"
    )
