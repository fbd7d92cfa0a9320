"""The pages on windows and joins: every test that a cell names is there, and a cell says what its
test shows."""

import os
import re
import subprocess
import sys

import pytest
from sluice.storage import PROJECT

from tests.documentation import FOLDER
from tests.spark.test_placement import (
    ALONE,
    BOTH,
    JOINS,
    LEFT,
    LOST,
    NO,
    NONE,
    STREAM_LEFT,
    STREAM_RIGHT,
    STREAM_STREAM,
)

PAGES = ("windows.md", "joins.md")
NAMED = re.compile(r"`(test_\w+\.py)::(\w+(?:\[[^\]`]+\])?)`")
WORDS = {
    "yes": "",
    "keeps both": BOTH,
    "keeps the left": LEFT,
    "no end": NO,
    "loses": LOST,
    "none": NONE,
    "no key": ALONE,
}


def read(page: str) -> str:
    return (FOLDER / page).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def collected() -> set[tuple[str, str]]:
    """Each test of the files that the pages name, those of longer runs included."""
    files = {file for page in PAGES for file, _ in NAMED.findall(read(page))}
    asked = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        + [f"tests/spark/{file}" for file in sorted(files)],
        cwd=PROJECT,
        env=os.environ | {"SLUICE_EXAMPLES": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(re.findall(r"^tests/spark/(\S+\.py)::(.+)$", asked.stdout, re.M))


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_is_there(collected, page):
    named = NAMED.findall(read(page))
    assert named and [one for one in named if one not in collected] == []


def rows_of(title: str) -> dict[str, list[str]]:
    """The rows of a table of the page on joins, by its first cell."""
    _, found, rest = read("joins.md").partition(f"| {title} |")
    assert found
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]
    return {first: others for first, *others in cells}


def test_the_matrix_of_two_streams_is_what_its_tests_show():
    told = {name: tuple(WORDS[c] for c in cells) for name, cells in rows_of("condition").items()}
    assert told == STREAM_STREAM


def test_the_matrix_of_a_stream_and_a_table_is_what_its_tests_show():
    allowed = {kind: [kind in STREAM_LEFT, kind in STREAM_RIGHT] for kind in JOINS}
    rows = rows_of("kind | stream on the left").items()
    assert {kind: [cell == "yes" for cell in cells] for kind, cells in rows} == allowed
