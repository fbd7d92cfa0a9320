"""Writes the catalogue into the table of bad_input.md: `python -m tests.bad_input.table`."""

from pathlib import Path

from tests.bad_input.catalogue import ALL_KINDS

PAGE = Path(__file__).parents[2] / "include" / "docs" / "bad_input.md"
HEAD = "| what comes | what happens |\n|---|---|\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def render_table() -> str:
    """The whole table, one line a kind, in the catalogue's order."""
    return HEAD + "".join(f"| {_cell(kind.comes)} | {_cell(kind.gets)} |\n" for kind in ALL_KINDS)


def find_table(page: str) -> str:
    """The table as it stands in the page."""
    rows = page[page.index(HEAD) :].splitlines(keepends=True)
    return "".join(
        rows[: next((n for n, row in enumerate(rows) if not row.startswith("|")), len(rows))]
    )


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.replace(find_table(page), render_table()), encoding="utf-8")
