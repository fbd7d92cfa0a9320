"""A person's typical mistakes are met with step, field, line, value and what to write instead."""

import re
from collections import Counter

import pytest
from sluice.errors import ExitCode
from sluice.runner import run_pipeline
from sluice.spec import RunRequest
from sluice.spec.expectations import known_kwargs, needed_kwargs
from sluice.spec.types import find_wrong_type

from tests.unit.mistake_table import PAGE, render_page
from tests.unit.typical_mistakes import MISTAKES, RIGHT, lay_out, validate

INNER = re.compile(r"Traceback|pydantic|valid dictionary|instance of|function-|literal\[|\[str\]")
"""What only a programmer could make sense of."""


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.what)
def test_a_typical_mistake_is_named_with_its_line_and_what_to_write(tmp_path, mistake):
    code, said = validate(lay_out(tmp_path, mistake.text))
    assert code == (ExitCode.DONE if mistake.warns else ExitCode.TERMINAL), said
    assert [part for part in mistake.says if part not in said] == [], said
    assert not mistake.line or re.search(rf"\bline {mistake.line}\b", said), said
    assert not INNER.search(said)


def test_nothing_is_said_of_a_file_that_is_right(tmp_path):
    assert validate(lay_out(tmp_path, RIGHT)) == (ExitCode.DONE, "")


def test_the_page_says_what_validate_says_of_at_least_forty_mistakes():
    assert len(MISTAKES) >= 40
    assert max(Counter(mistake.what for mistake in MISTAKES).values()) == 1
    assert all(mistake.old in RIGHT for mistake in MISTAKES)
    assert PAGE.read_text(encoding="utf-8") == render_page(), (
        "run `python -m tests.unit.mistake_table`"
    )


def test_what_row_level_rules_take_is_what_they_are_compiled_from():
    from sluice.quality.row_rules import ROW_TYPES

    for name, row_type in ROW_TYPES.items():
        needed = {*row_type.columns, *row_type.required}
        assert set(needed_kwargs(name)) == needed
        assert set(known_kwargs(name)) - {"mostly"} == needed | set(row_type.optional)


@pytest.mark.parametrize(
    ("type_", "wrong"),
    [
        ("array<string>", ""),
        ("struct<id: string, n: array<int>>", ""),
        ("struct<id string NOT NULL, `a b`: decimal(10, 2) COMMENT 'x, y'>", ""),
        ("map<string, struct<a: varchar(3), strng: int>>", ""),
        ("array<geometry>", ""),
        ("array<strng>", "strng"),
        ("map<string, datetime>", "datetime"),
        ("struct<a: int, b: struct<c: int64>>", "int64"),
    ],
)
def test_a_wrong_type_is_found_within_others(type_, wrong):
    assert find_wrong_type(type_) == wrong


def test_options_with_a_dot_are_settings_of_other_libraries(tmp_path):
    options = 'parquet.filter.enabled: false\n        SEP: ";"'
    file = lay_out(tmp_path, RIGHT.replace('sep: ";"', options))
    assert validate(file) == (ExitCode.DONE, "")


@pytest.mark.parametrize(
    ("transform", "says"),
    [
        ("clean.py", "no such function in the file"),
        ("broken.py:clean", "the file is not Python"),
        ("star.py:anything", ""),
        ("clean.py:clean_rows", ""),
    ],
)
def test_python_is_looked_at_and_not_run(tmp_path, transform, says):
    (tmp_path / "broken.py").write_text("def clean(rows:\n")
    (tmp_path / "star.py").write_text("from os.path import *\nraise SystemExit\n")
    step = f"    transform: {transform}\n    event_time:"
    code, said = validate(lay_out(tmp_path, RIGHT.replace("    event_time:", step)))
    assert says in said and bool(says) == bool(code)
    assert not says or "line 18, step pages" in said


def test_the_code_of_a_sink_is_looked_at_as_well(tmp_path):
    sink = "- {kind: delta}\n      - {kind: foreach_batch, function: clean.py:clean_row}"
    written = RIGHT.replace("      kind: delta\n      cluster_by: [at]", f"      {sink}")
    written = written.replace("      order_by: [at desc]\n", "")
    _, said = validate(lay_out(tmp_path, written))
    assert "steps.0.sink.1.function" in said and "Did you mean 'clean_rows'?" in said
    assert "line 33, step pages" in said


def test_every_mistake_of_a_file_is_told_at_once_and_a_run_reports_them_on_one_line(tmp_path):
    text = RIGHT.replace("min_value", "minimum").replace("sep:", "comma:").replace("max_v", "maxv")
    _, said = validate(lay_out(tmp_path, text))
    assert "no kwarg 'minimum'" in said and "no kwarg 'maxvalue'" in said
    file = lay_out(tmp_path, RIGHT.replace("keys:", "key:").replace("budget:", "budgt:"))
    _, said = validate(file)
    assert [line for line in said.splitlines() if "Did you mean" not in line] == []
    assert "line 3." in said and "line 22, step pages" in said
    report = run_pipeline(RunRequest(pipeline=str(file), root=str(tmp_path / "root")))
    assert "\n" not in report.error and "'budget'" in report.error and "'keys'" in report.error


def test_a_value_from_the_environment_is_not_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("SIGN", "hush")
    _, said = validate(lay_out(tmp_path, RIGHT.replace('sep: ";"', "sepp: ${SIGN}")))
    assert "sepp: csv has no such option" in said and "hush" not in said


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: visits", "name: {{ visits }}", "`{{` is a mapping in YAML"),
        ("      within: 2 days", "     within: 2 days", "line 23"),
        ("      keys: [id]", "      keys [id]", "the line above lacks its colon"),
        ("budget:", "on:", "Put the name in quotes"),
        ("keys: [id]", "<<: {keys: [id]}", "`<<` is not read here, line 22"),
        ("budget: 1 hour", "start_date: soon", "not a date or a moment"),
        ('schedule: "0 6 * * *"', "schedule: [a]", "line 2"),
    ],
)
def test_rarer_mistakes_have_their_line_and_no_inner_names(tmp_path, old, new, says):
    code, said = validate(lay_out(tmp_path, RIGHT.replace(old, new)))
    assert code == ExitCode.TERMINAL
    assert says in said and "line " in said
    assert not INNER.search(said)
