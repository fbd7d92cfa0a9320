"""Lists of days that follow from a time, as SQL says them: `sequence(date(at), date_add(date(at),
6))`."""

import re
from dataclasses import dataclass

_OWN = r"(?:to_)?date\(\s*`?(\w+)`?\s*\)"
_DAYS = (
    re.compile(_OWN, re.I),
    re.compile(rf"date_(add|sub)\(\s*{_OWN}\s*,\s*(\d+)\s*\)", re.I),
    re.compile(rf"{_OWN}\s*([+-])\s*(?:interval\s+'?(\d+)'?\s+days?|(\d+))", re.I),
)
_LIST = re.compile(r"sequence\((.*)\)", re.I | re.S)


@dataclass(frozen=True)
class Days:
    """The days from `first` to `last`, counted from that of a column."""

    column: str
    first: int
    last: int


def read_days(said: str) -> Days | None:
    """What some SQL gives a list of; None where it is no list of days, or of another shape."""
    found = _LIST.fullmatch(said.strip())
    parts = _split(found[1]) if found is not None else []
    if len(parts) != 2:
        return None
    ends = [_read_day(part) for part in parts]
    if None in ends:
        return None
    (column, first), (other, last) = (end for end in ends if end is not None)
    return Days(column, first, last) if column == other and first <= last else None


def _split(text: str) -> list[str]:
    """Arguments of a call, at the commas outside of parentheses."""
    parts, depth = [""], 0
    for char in text:
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def _read_day(said: str) -> tuple[str, int] | None:
    """A column, and by how many days one is later than its own."""
    own, called, added = (pattern.fullmatch(said) for pattern in _DAYS)
    if own is not None:
        return own[1], 0
    if called is not None:
        return called[2], int(called[3]) * (1 if called[1].lower() == "add" else -1)
    if added is not None:
        return added[1], int(added[3] or added[4]) * (1 if added[2] == "+" else -1)
    return None
