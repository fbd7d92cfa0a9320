"""README and the pages of include/docs, as tests read them."""

import re
from pathlib import Path

from sluice.storage import PROJECT

FENCE = re.compile(
    r"(?:^<!-- run by (?P<by>[^\n]*) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S
)
FOLDER = PROJECT / "include" / "docs"
DOCS = [PROJECT / "README.md", *sorted(FOLDER.rglob("*.md"))]


def name_document(path: Path) -> str:
    """A page for the names of tests: two of them are called README."""
    return str(path.relative_to(PROJECT))


def find_blocks(document: Path) -> list[re.Match]:
    """The fenced blocks of a document."""
    return list(FENCE.finditer(document.read_text(encoding="utf-8")))


def hide_sizes(text: str) -> str:
    """What a report says of states and of files without their bytes, which hang on how well they
    were compressed, and without the rows in these files, which hang on how many there are."""
    files = r"from [\d,]+ rows in files of [\d.]+ [kM]?B(, [\d.]+% of the inputs' [\d.]+ [kM]?B)?"
    text = re.sub(files, "from files", text)
    return re.sub(r"held in state \([\d.]+ k?B", "held in state (300 B", text)


def read_prose(document: Path) -> str:
    """What a document says outside of its blocks."""
    return FENCE.sub("", document.read_text(encoding="utf-8"))
