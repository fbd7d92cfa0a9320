"""`sluice rename`: a file gets another name in it and keeps the old one as `uid`, and nothing else
of its text changes."""

import pytest
import yaml
from sluice.backlog import measure_pipeline
from sluice.cli import app
from sluice.errors import SpecError
from sluice.spec import load_pipeline
from sluice.spec.rename import rename_in_text
from typer.testing import CliRunner

TEXT = """\
# Orders of the shop – all of them
name: orders   # as Airflow shows it
owner: sales
steps:
  - name: paid
    source: {kind: files, path: landing, format: json, schema: {id: string}}
    sink: {kind: delta, mode: append}
  # what follows
  - {name: copy, source: {kind: table, step: paid}, sink: {kind: delta, mode: append}}
"""


def changed(before: str, after: str) -> list[str]:
    """The lines that are not in the text before."""
    there = before.splitlines()
    return [line for line in after.splitlines() if line not in there]


def test_a_pipeline_keeps_its_text_and_its_old_name_as_uid():
    after = rename_in_text(TEXT, "sales")
    assert changed(TEXT, after) == ["name: sales   # as Airflow shows it", "uid: orders"]
    assert len(after.splitlines()) == len(TEXT.splitlines()) + 1


def test_a_step_is_renamed_where_it_stands_and_where_others_read_it():
    after = rename_in_text(TEXT, "billed", "paid")
    assert changed(TEXT, after) == [
        "  - name: billed",
        "    uid: paid",
        "  - {name: copy, source: {kind: table, step: billed}, sink: {kind: delta, mode: append}}",
    ]


def test_a_step_in_braces_is_renamed_within_them():
    after = rename_in_text(TEXT, "twin", "copy")
    assert yaml.safe_load(after)["steps"][1]["name"] == "twin"
    assert yaml.safe_load(after)["steps"][1]["uid"] == "copy"


def test_a_second_rename_keeps_the_first_name_as_uid():
    twice = rename_in_text(rename_in_text(TEXT, "sales"), "shop")
    assert twice == rename_in_text(TEXT, "shop")


@pytest.mark.parametrize("text", ["name: ${NAME}\n", "a: &n orders\nname: *n\n"])
def test_a_name_that_the_file_takes_from_elsewhere_is_left_to_a_person(text):
    with pytest.raises(SpecError, match="does not spell this name out"):
        rename_in_text(text, "sales")


def test_a_step_that_is_not_there_is_named_with_the_nearest():
    with pytest.raises(SpecError, match="paid"):
        rename_in_text(TEXT, "billed", "payd")


def test_two_steps_of_one_uid_are_refused(tmp_path):
    file = tmp_path / "orders.yaml"
    file.write_text(TEXT.replace("name: copy,", "name: copy, uid: paid,"))
    with pytest.raises(SpecError, match="keeps what it makes under paid, and so does another"):
        load_pipeline(file)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two pipelines, as `sluice` finds them."""
    monkeypatch.setenv("SLUICE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("SLUICE_ROOT", str(tmp_path / "root"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "orders.yaml").write_text(TEXT)
    (tmp_path / "visits.yaml").write_text(TEXT.replace("orders", "visits"))
    return tmp_path


def rename(*arguments: str):
    return CliRunner().invoke(app, ["rename", *arguments])


def places(file) -> list[str]:
    paths = load_pipeline(file).paths()
    names = [step.name for step in load_pipeline(file).steps]
    each = (paths.checkpoint, paths.table, paths.quarantine, paths.late, paths.positions)
    return [paths.reports(), *(place(name) for name in names for place in each)]


def test_every_place_stays_under_whatever_name(folder):
    before = places(folder / "orders.yaml")
    assert rename("orders", "sales").exit_code == 0
    assert rename("sales", "billed", "--step", "paid").exit_code == 0
    assert places(folder / "sales.yaml") == before
    assert sorted(path.name for path in folder.glob("*y*ml*")) == ["sales.yaml", "visits.yaml"]


@pytest.mark.parametrize(
    "arguments", [("visits",), ("orders",), ("copy", "--step", "paid"), ("Sales!",)]
)
def test_a_name_that_is_taken_or_is_none_is_refused_and_the_file_stays(folder, arguments):
    assert rename("orders", *arguments).exit_code == 6
    assert (folder / "orders.yaml").read_text() == TEXT
    assert len(list(folder.iterdir())) == 2


def test_a_name_under_which_another_keeps_its_tables_is_taken(folder):
    assert rename("orders", "sales").exit_code == 0
    refused = rename("visits", "orders")
    assert refused.exit_code == 6 and "this name is taken" in refused.output


def test_a_file_that_cannot_be_read_stands_in_nobodys_way_but_for_its_name(folder):
    (folder / "broken.yaml").write_text("name: [")
    assert rename("visits", "broken").exit_code == 6
    assert rename("visits", "calls").exit_code == 0


def begin(folder, pipeline: str, step: str) -> None:
    """A checkpoint that has finished a batch."""
    spark = folder / "root" / "checkpoints" / pipeline / step / "spark"
    for name in ("offsets", "commits"):
        (spark / name).mkdir(parents=True)
        (spark / name / "0").write_text("v1\n{}\n{}")


def warnings(folder, name: str) -> str:
    pipeline = load_pipeline(folder / f"{name}.yaml")
    (folder / "landing").mkdir(exist_ok=True)
    backlog = measure_pipeline(pipeline, pipeline.paths())
    return " ".join(warning for found in backlog for warning in found.warnings)


def test_a_step_renamed_by_hand_is_told_with_what_keeps_its_past(folder):
    begin(folder, "orders", "paid")
    by_hand = TEXT.replace("paid", "billed")
    (folder / "orders.yaml").write_text(by_hand)
    assert "billed has never run, and paid, which the file does not name" in warnings(
        folder, "orders"
    )
    advised = by_hand.replace("- name: billed\n", "- name: billed\n    uid: paid\n")
    (folder / "orders.yaml").write_text(advised)
    assert "never run" not in warnings(folder, "orders")


def test_a_pipeline_renamed_by_hand_is_told_and_a_new_one_is_not(folder):
    begin(folder, "orders", "paid")
    assert "never run" not in warnings(folder, "visits")
    (folder / "orders.yaml").rename(folder / "sales.yaml")
    (folder / "sales.yaml").write_text(TEXT.replace("orders", "sales"))
    assert "write `uid: orders` under its name" in warnings(folder, "sales")
