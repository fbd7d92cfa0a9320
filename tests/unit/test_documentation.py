"""The pages lead somewhere, and what they tell to type is what `sluice` understands."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from sluice import errors
from sluice.cli import app
from sluice.errors import ExitCode, SluiceError

from tests.documentation import DOCS, FOLDER, find_blocks, name_document, read_prose

VERBS = typer.main.get_command(app).commands
RUNBOOK = (FOLDER / "runbook.md").read_text(encoding="utf-8")


def list_anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", read_prose(document), re.M)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.replace(" ", "-") for title in plain}


def list_links(document: Path) -> Iterator[tuple[Path, str]]:
    """(file, anchor) of every link of a document that stays within the project."""
    for target in re.findall(r"\]\(([^)\s]+)\)", read_prose(document)):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            yield (document.parent / file if file else document), anchor


@pytest.mark.parametrize("document", DOCS, ids=name_document)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(document):
    for file, anchor in list_links(document):
        assert file.exists(), f"{document.name}: {file} is not there"
        if anchor:
            assert anchor in list_anchors(file), f"{document.name}: {file.name} has no #{anchor}"


def test_the_index_has_every_page_and_the_readme_leads_to_it():
    index = FOLDER / "README.md"
    linked = {file.resolve() for file, _ in list_links(index)}
    assert linked == {page for page in DOCS[1:] if page != index}
    assert index in {file.resolve() for file, _ in list_links(DOCS[0])}


def list_commands(document: Path) -> Iterator[str]:
    """What a document tells to type that begins with `sluice`: lines of blocks, and code within a
    sentence."""
    for block in find_blocks(document):
        if block["kind"] in ("sh", "text"):
            for line in block["text"].splitlines():
                if re.match(r"sluice [a-z]", line):
                    yield line.partition(" #")[0]
    yield from re.findall(r"`(sluice [a-z][^`]*)`", read_prose(document).replace("\n", " "))


@pytest.mark.parametrize("document", DOCS, ids=name_document)
def test_every_command_and_option_that_is_printed_is_there(document):
    for command in list_commands(document):
        _, verb, *words = command.split()
        known = VERBS.get(verb)
        assert known is not None, f"{document.name}: {command}: there is no {verb}"
        if isinstance(known, typer.core.TyperGroup):
            known = known.commands[words[0]]
        options = {option for parameter in known.params for option in parameter.opts}
        for option in re.findall(r"(?<!\S)\[?(--[a-z-]+)", " ".join(words)):
            assert option in options, f"{document.name}: {command}: {verb} has no {option}"


def test_the_runbook_names_every_exit_code_and_every_class_of_error_with_its_code():
    classes = {
        name: str(int(kind.exit_code))
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, SluiceError)
    }
    assert dict(re.findall(r"^\| `(\w+)` \| (\d) \|", RUNBOOK, re.M)) == classes
    rows = re.findall(r"^\| ([\d, ]+) \| `", RUNBOOK, re.M)
    assert {int(code) for row in rows for code in row.split(",")} == {
        int(code) for code in ExitCode
    }
