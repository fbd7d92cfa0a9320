"""What one kind of bad input is: how its files are made, and what must become of them."""

from collections import Counter
from dataclasses import dataclass, field

UNREADABLE = "unreadable_file"


@dataclass(frozen=True)
class Kind:
    """One line of the table in bad_input.md. `comes` and `gets` are its two cells, word for word.

    The files lie in a folder of the kind's own name; `lines` are one more file there, whose lines
    each have an outcome of their own.
    """

    id: str
    comes: str
    gets: str
    lines: dict[str, str] = field(default_factory=dict)
    """Line -> what becomes of it: the row as JSON without its NULLs, or why it is malformed."""
    header: str = ""
    """First line of the file of `lines`."""
    files: dict[str, bytes | str] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    """Rows of `files` that are written, as JSON without NULLs."""
    refused: tuple[tuple[str | None, str], ...] = ()
    """Rows of `files` that are quarantined: (text, `reason` or `reason: detail`).

    There is no text where the whole file is refused.
    """
    duplicates: int = 0
    warning: str = ""
    """Part of a warning in the report."""
    error: str = ""
    """A regular expression for the error that ends the run, naming the file and what to do."""
    test: str = ""
    """The test that lands this kind, where it takes more than files that are read once."""

    def all_files(self, ending: str) -> dict[str, bytes | str]:
        """Name -> content of every file of the kind."""
        text = "".join(
            f"{line}\n" for line in ([self.header] if self.header else []) + list(self.lines)
        )
        return self.files | ({f"lines.{ending}": text} if self.lines else {})

    def written(self) -> Counter:
        """The rows that must be in the table."""
        return Counter(self.rows) + Counter(
            outcome for outcome in self.lines.values() if outcome.startswith("{")
        )

    def quarantined(self) -> Counter:
        """The rows that must be in quarantine."""
        return Counter(self.refused) + Counter(
            (shorten(line), f"malformed: {why}")
            for line, why in self.lines.items()
            if not why.startswith("{")
        )


@dataclass(frozen=True)
class Landing:
    """Kinds that land together and are read by one run of one pipeline."""

    name: str
    source: dict
    kinds: tuple[Kind, ...]
    next_file: tuple[str, bytes | str]
    """A good file of one row, for the run after."""
    step: dict = field(default_factory=lambda: {"sink": {"mode": "append"}})
    ending: str = "json"


def shorten(text: str | None) -> str | None:
    """Long texts by their beginning, their length and their end, so that a failure can be read."""
    return text if text is None or len(text) <= 300 else f"{text[:50]}…{len(text)}…{text[-20:]}"
