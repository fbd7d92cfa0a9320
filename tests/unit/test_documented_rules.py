"""The page about rules names what the engine compiles, and no more."""

import pytest
import yaml
from sluice.quality.row_rules import ROW_TYPES
from sluice.spec import load_pipeline
from sluice.spec.expectations import EXPECTATIONS, NOT_ON_SPARK, known_kwargs, needed_kwargs

from tests.rules_page import PIPELINE, read_types


@pytest.fixture
def rules(tmp_path):
    (tmp_path / "orders.yaml").write_text(PIPELINE)
    return load_pipeline(tmp_path / "orders.yaml").steps[0].rules


def test_each_compiled_type_is_on_the_page_with_its_kwargs_and_no_other_is():
    told = {
        name: (needs, more) for name, (needs, more, *_) in read_types("Row-level rules").items()
    }
    assert told == {
        name: ([*row.columns, *row.required], list(row.optional)) for name, row in ROW_TYPES.items()
    }


def test_each_type_of_the_table_is_on_the_page_with_its_kwargs_and_no_other_is():
    told = read_types("Table-level rules")
    assert set(told) == EXPECTATIONS - set(ROW_TYPES) - set(NOT_ON_SPARK)
    for name, (needs, more) in told.items():
        assert (needs, sorted(needs + more)) == (needed_kwargs(name), sorted(known_kwargs(name)))


def test_the_sample_has_a_rule_of_each_compiled_type_and_loads_as_it_is_printed(rules):
    assert {rule.type for rule in rules} > set(ROW_TYPES)
    written = yaml.safe_load(PIPELINE)["steps"][0]["rules"]
    assert [(rule.type, rule.kwargs) for rule in rules] == [
        (rule["type"], rule["kwargs"]) for rule in written
    ]
    assert {rule.on_fail for rule in rules} == {"warn", "quarantine", "stop"}
