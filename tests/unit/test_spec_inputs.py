"""Inputs of a step that do not go together are refused as the file is read, with the field."""

import pytest
from sluice.errors import SpecError
from sluice.spec import load_pipeline

FILES = "{kind: files, path: /a, format: json, schema: {id: string, at: timestamp}}"
TABLE = "{kind: table, path: p}"
ONE = f"inputs: {{a: {{source: {FILES}}}, b: {{source: {FILES}}}}}"
RULE = "{type: expect_table_row_count_to_equal, kwargs: {value: 1}, on_fail: warn}"

CASES = {
    "both_kinds": (f"source: {FILES}\n    {ONE}\n    transform: t.sql", "one of the two"),
    "neither": ("transform: t.sql", "one of the two"),
    "no_transform": (ONE, "`inputs` need a `transform`"),
    "nothing_but_tables": (
        f"inputs: {{a: {{source: {TABLE}, static: true}}}}\n    transform: t.sql",
        "every input is static",
    ),
    "a_static_folder": (
        f"inputs: {{a: {{source: {FILES}, static: true}}}}\n    transform: t.sql",
        "only a table or a topic can be static",
    ),
    "a_static_table_from_its_end": (
        "inputs: {a: {source: {kind: table, path: p, start: latest}, static: true}}"
        "\n    transform: t.sql",
        "read as a whole; leave `start` out",
    ),
    "a_static_table_with_rules": (
        f"inputs: {{a: {{source: {TABLE}, static: true, event_time: {{column: at}}}}}}"
        "\n    transform: t.sql",
        "a static input is read as it is",
    ),
    "a_watermark_of_nothing": (
        f"inputs: {{a: {{source: {FILES}, watermark: 1 hour}}}}\n    transform: t.sql",
        "`watermark` needs `event_time`",
    ),
    "a_rule_on_a_table": (
        f"inputs: {{a: {{source: {FILES}, rules: [{RULE}]}}}}\n    transform: t.sql",
        "an input has none",
    ),
    "a_name_that_sql_cannot_say": (
        f"inputs: {{'a b': {{source: {FILES}}}}}\n    transform: t.sql",
        "the name of an input",
    ),
    "a_limit_on_one_of_several": (
        "inputs: {a: {source: {kind: files, path: /a, format: json, schema: {id: string}, "
        "max_malformed: 5 %}}}\n    transform: t.sql",
        "`max_malformed` judges the one source",
    ),
    "a_step_that_comes_later": (
        f"inputs: {{a: {{source: {FILES}}}, b: {{source: {{kind: table, step: z}}}}}}"
        "\n    transform: t.sql",
        "no earlier step",
    ),
    "a_code_that_is_not_there": (
        f"inputs: {{a: {{source: {FILES}, transform: gone.sql}}}}\n    transform: t.sql",
        "no such file",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_inputs_that_cannot_be_meant_are_refused_with_what_to_write(tmp_path, case):
    step, said = CASES[case]
    file = tmp_path / "p.yaml"
    file.write_text(f"name: p\nsteps:\n  - name: s\n    {step}\n")
    (tmp_path / "t.sql").write_text("SELECT * FROM a")
    with pytest.raises(SpecError) as refused:
        load_pipeline(file)
    assert said in str(refused.value)


def test_a_step_knows_its_streams_and_its_tables_by_name(tmp_path):
    file = tmp_path / "p.yaml"
    inputs = f"inputs: {{a: {{source: {FILES}}}, b: {{source: {TABLE}, static: true}}}}"
    file.write_text(f"name: p\nsteps:\n  - name: s\n    {inputs}\n    transform: t.sql\n")
    (tmp_path / "t.sql").write_text("SELECT * FROM a")
    (step,) = load_pipeline(file).steps
    assert (list(step.streams), list(step.statics)) == (["a"], ["b"])
    assert [one.name for one in step.inputs.values()] == ["a", "b"]
