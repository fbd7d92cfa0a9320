"""Settings as a file for spark-submit: a command line can be read by everyone on the machine."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_properties(settings: Mapping[str, str]) -> Iterator[Path]:
    """A file for `--properties-file` that only its owner can read, removed after the block."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="ascii", prefix="sluice-", suffix=".conf"
    ) as file:
        file.writelines(f"{_escape(key)}={_escape(value)}\n" for key, value in settings.items())
        file.flush()
        yield Path(file.name)


def _escape(text: str) -> str:
    """A text as java.util.Properties reads it back."""
    return "".join(
        char if char.isascii() and char.isprintable() and char not in "\\=:#! " else _units(char)
        for char in text
    )


def _units(char: str) -> str:
    """A character by its UTF-16 units, which is what Java counts in."""
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
