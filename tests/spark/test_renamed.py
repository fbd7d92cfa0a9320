"""A pipeline and its steps go on under other names where they were: nothing is read again, told
twice or written to another table."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from sluice.cli import app
from sluice.errors import ExitCode
from sluice.report import RunReport, list_reports
from sluice.runner import run_pipeline
from sluice.spec import RunRequest, load_pipeline
from typer.testing import CliRunner

STEPS = [
    {
        "name": "paid",
        "source": {"kind": "files", "format": "json", "schema": {"id": "string", "n": "bigint"}},
        "sink": {"kind": "delta", "mode": "append"},
        "rules": [
            {
                "type": "expect_column_values_to_be_between",
                "kwargs": {"column": "n", "min_value": 0},
                "on_fail": "quarantine",
            }
        ],
    },
    {
        "name": "copy",
        "source": {"kind": "table", "step": "paid"},
        "sink": {"kind": "delta", "mode": "append"},
    },
]


class Shop:
    """Two steps that only append: whatever is read again is there twice."""

    def __init__(self, spark, folder: Path) -> None:
        self.spark, self.folder, self.landing = spark, folder, folder / "landing"
        self.landing.mkdir()
        first = STEPS[0] | {"source": STEPS[0]["source"] | {"path": str(self.landing)}}
        (folder / "orders.yaml").write_text(
            yaml.safe_dump({"name": "orders", "steps": [first, STEPS[1]]}, sort_keys=False)
        )

    @property
    def file(self) -> Path:
        (file,) = self.folder.glob("*.yaml")
        return file

    def run(self, *numbers: int) -> RunReport:
        """Land one file of these numbers, and run."""
        rows = "".join(f'{{"id": "o{n}", "n": {n}}}\n' for n in numbers)
        (self.landing / f"{numbers[0]}.json").write_text(rows)
        report = run_pipeline(RunRequest(pipeline=str(self.file), root=str(self.folder / "root")))
        report.check()
        return report

    def rename(self, *arguments: str) -> None:
        done = CliRunner().invoke(app, ["rename", self.file.stem, *arguments])
        assert done.exit_code == 0, done.output

    def numbers(self, step: int) -> Counter:
        pipeline = load_pipeline(self.file)
        path = pipeline.steps[step].target_path(pipeline.paths(self.folder / "root"))
        return Counter(row.n for row in self.spark.read.format("delta").load(path).collect())


@pytest.fixture
def shop(spark, tmp_path, monkeypatch) -> Shop:
    monkeypatch.setenv("SLUICE_PIPELINES", str(tmp_path))
    return Shop(spark, tmp_path)


def test_a_renamed_pipeline_and_its_renamed_steps_go_on_where_they_were(shop):
    assert shop.run(1, 2, -3).error is None
    shop.rename("sales")
    shop.rename("billed", "--step", "paid")
    shop.rename("twin", "--step", "copy")
    report = shop.run(4, -5)
    assert (report.pipeline, report.error) == ("sales", None)
    assert [step.name for step in report.steps] == ["billed", "twin"]
    assert [(s.counts.read, s.counts.written) for s in report.steps] == [(2, 1), (1, 1)]
    assert not any("never run" in warning for s in report.steps for warning in s.warnings)
    assert shop.numbers(0) == shop.numbers(1) == Counter([1, 2, 4])
    folder = load_pipeline(shop.file).paths(shop.folder / "root").reports()
    assert [r.pipeline for r in list_reports(folder)] == ["sales", "orders"]


def test_another_name_without_the_old_uid_is_told_by_the_report(shop):
    assert shop.run(1).error is None
    text = shop.file.read_text().replace("orders", "sales")
    shop.file.rename(shop.folder / "sales.yaml").write_text(text)
    warnings = [warning for step in shop.run(2).steps for warning in step.warnings]
    assert any("write `uid: orders` under its name" in warning for warning in warnings)


def test_two_pipelines_of_one_uid_are_refused(shop):
    assert shop.run(1).error is None
    twin = shop.folder / "twin.yaml"
    shutil.copy(shop.file, twin)
    twin.write_text(twin.read_text().replace("name: orders", "name: twin\nuid: orders"))
    request = RunRequest(pipeline=str(twin), root=str(shop.folder / "root"))
    (shop.landing / "2.json").write_text('{"id": "o2", "n": 2}\n')
    refused = run_pipeline(request)
    assert refused.exit_code is ExitCode.TERMINAL
    assert "two pipelines keep what they make under one uid" in refused.error
