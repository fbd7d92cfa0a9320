"""The page for people says what the catalogue says, and every kind is tested."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.bad_input.catalogue import ALL_KINDS
from tests.bad_input.table import PAGE, find_table, render_table

TESTS = "".join(
    path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py")
)


def test_the_table_of_the_page_has_a_line_for_every_kind_and_no_other():
    assert find_table(PAGE.read_text(encoding="utf-8")) == render_table(), (
        "run `python -m tests.bad_input.table`"
    )


def test_there_are_more_than_a_hundred_kinds_and_each_has_a_name_and_a_line_of_its_own():
    assert len(ALL_KINDS) > 100
    assert max(Counter(kind.id for kind in ALL_KINDS).values()) == 1
    assert max(Counter(kind.comes for kind in ALL_KINDS).values()) == 1


@pytest.mark.parametrize("kind", ALL_KINDS, ids=lambda kind: kind.id)
def test_every_kind_lands_files_or_names_a_test_that_is_there(kind):
    assert kind.all_files("x") or kind.test
    assert not kind.test or re.search(rf"^def {kind.test}\(", TESTS, re.MULTILINE)
