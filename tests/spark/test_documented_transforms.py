"""What the pages about transforms, aggregates and states show is what a run gives."""

from collections import Counter

import pytest
from sluice.report.step_notes import step_notes
from sluice.runner import run_pipeline
from sluice.spec import RunRequest, load_pipeline

from tests.documentation import FOLDER, find_blocks, hide_sizes


def list_texts(page: str, kind: str) -> list[str]:
    """The blocks of a page that are of a kind, in order."""
    return [b["text"] for b in find_blocks(FOLDER / page) if b["kind"] == kind]


PAGES = {
    "aggregates.md": ("hourly", "hour(hour), amount, orders", [(8, 12, 2), (9, 3, 2)]),
    "custom_state.md": (
        "activity",
        "visitor, hour(timestamp_millis(began)), hits",
        [("bob", 8, 1), ("ann", 8, 3), ("eve", 8, 1)],
    ),
}


def describe(step) -> list[str]:
    """What a report says, but for the bytes of a state."""
    return [hide_sizes(line) for line in (*map(str, step.counts.lines), *step_notes(step))]


@pytest.mark.parametrize("page", PAGES)
def test_the_three_runs_of_a_page_say_what_it_shows(spark, tmp_path, monkeypatch, page):
    name, columns, expected = PAGES[page]
    monkeypatch.setenv("LANDING", str(tmp_path / "landing"))
    (tmp_path / "landing").mkdir()
    (file,) = list_texts(page, "yaml")
    (code,) = list_texts(page, "python")
    (tmp_path / f"{name}.yaml").write_text(file)
    (tmp_path / f"{name}.py").write_text(code)
    request = {"pipeline": str(tmp_path / f"{name}.yaml"), "root": str(tmp_path / "root")}
    shown = zip(list_texts(page, "json"), list_texts(page, "text"), strict=True)
    for number, (rows, said) in enumerate(shown):
        (tmp_path / "landing" / f"{number}.json").write_text(rows)
        report = run_pipeline(RunRequest(**request, run_id=("one", "two", "three")[number]))
        assert report.error is None
        (step,) = report.steps
        assert describe(step) == said.splitlines()
    pipeline = load_pipeline(tmp_path / f"{name}.yaml")
    table = pipeline.steps[0].target_path(pipeline.paths(request["root"]))
    rows = spark.read.format("delta").load(table).selectExpr(*columns.split(", "))
    assert Counter(map(tuple, rows.collect())) == Counter(expected)


def test_the_function_of_the_page_about_transforms_passes_the_test_beside_it(spark):
    code, test = list_texts("transforms.md", "python")
    names: dict = {}
    exec(code + test, names)  # the page's own blocks
    names["test_pages_are_in_lower_case"](spark)


@pytest.mark.parametrize("sql", list_texts("transforms.md", "sql"))
def test_the_sql_of_the_page_runs_over_source(spark, sql):
    spark.createDataFrame([("a", 2), ("b", 3)], "id string, n int").createOrReplaceTempView(
        "source"
    )
    assert [tuple(row) for row in spark.sql(sql).collect()] == [("b", 6)]
    spark.catalog.dropTempView("source")


def test_the_run_of_the_page_about_inputs_says_what_it_shows(spark, tmp_path, monkeypatch):
    places = {name: tmp_path / name for name in ("impressions", "clicks", "names")}
    for name, folder in places.items():
        monkeypatch.setenv(name.upper(), str(folder))
    (file,), (sql,) = list_texts("inputs.md", "yaml"), list_texts("inputs.md", "sql")
    (tmp_path / "ads.yaml").write_text(file)
    (tmp_path / "ads.sql").write_text(sql)
    names = spark.createDataFrame([("A", "Acme")], "ad string, name string")
    names.write.format("delta").save(str(places["names"]))
    at = '"at": "2026-01-01T12:0'
    landed = {
        "impressions": f'{{"id": "1", "ad": "A", {at}0:00Z"}}\n{{"id": "2", "ad": "B", {at}5:00Z"}}'
        f'\n{{"id": "3", {at}2:00Z"}}\n{{broken\n',
        "clicks": f'{{"id": "1", {at}1:00Z"}}\n',
    }
    for name, rows in landed.items():
        places[name].mkdir()
        (places[name] / "1.json").write_text(rows)
    pipeline, root = str(tmp_path / "ads.yaml"), str(tmp_path / "root")
    report = run_pipeline(RunRequest(pipeline=pipeline, root=root, run_id="one"))
    assert report.error is None
    (step,) = report.steps
    (said,) = list_texts("inputs.md", "text")
    assert describe(step) == said.splitlines()
    rows = spark.read.format("delta").load(f"{root}/tables/ads/rates").select("name", "id")
    assert [tuple(row) for row in rows.collect()] == [("Acme", "1")]
