"""Times and decimals as people and programs write them, and the pattern Spark reads them by."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import product

_PARTS = {  # Spark's letters: what they look like, and strptime's
    "yyyy": (r"\d{4}", "%Y"),
    "yy": (r"\d{2}", "%y"),
    "MMM": (r"[A-Z][a-z]{2}", "%b"),
    "MM": (r"\d{2}", "%m"),
    "dd": (r"\d{2}", "%d"),
    "M": (r"\d{1,2}", "%m"),
    "d": (r"\d{1,2}", "%d"),
    "HH": (r"\d{2}", "%H"),
    "H": (r"\d{1,2}", "%H"),
    "hh": (r"\d{2}", "%I"),
    "mm": (r"\d{2}", "%M"),
    "ss": (r"\d{2}", "%S"),
    "SSS": (r"\d{3}", "%f"),
    "a": (r"[AP]M", "%p"),
    "Z": (r"[+-]\d{4}", "%z"),
    "'T'": ("T", "T"),
}
_LETTERS = re.compile("|".join(sorted(map(re.escape, _PARTS), key=len, reverse=True)))
_DATES = (
    "yyyy-MM-dd",
    "dd.MM.yyyy",
    "d.M.yyyy",
    "dd/MM/yyyy",
    "MM/dd/yyyy",
    "d/M/yyyy",
    "M/d/yyyy",
    "dd-MM-yyyy",
    "yyyy/MM/dd",
    "yy/MM/dd",
    "dd-MMM-yyyy",
    "dd/MMM/yyyy",
)
_CLOCKS = ("HH:mm:ss.SSS", "HH:mm:ss,SSS", "HH:mm:ss Z", "HH:mm:ss", "HH:mm", "H:mm", "hh:mm a")
_ENOUGH = 1_000


@dataclass(frozen=True)
class TimeFormat:
    """A pattern in Spark's letters."""

    pattern: str

    @property
    def is_date(self) -> bool:
        """True for a day without a clock."""
        return "mm" not in self.pattern

    @cached_property
    def regex(self) -> str:
        """What a text of this pattern looks like, in syntax that Java and Python share."""
        found, rest = [], 0
        for part in _LETTERS.finditer(self.pattern):
            found += [re.escape(self.pattern[rest : part.start()]), _PARTS[part.group()][0]]
            rest = part.end()
        looks = "".join(found) + re.escape(self.pattern[rest:])
        return looks.replace(r"\ ", " ").replace(r"\-", "-").replace(r"\d", "[0-9]")

    @property
    def order(self) -> str:
        """What comes after what: `dMy`, however many digits each has."""
        return re.sub(r"(.)\1+", r"\1", self.pattern.partition("H")[0]).strip()

    def write(self, moment: datetime) -> str:
        """A moment as a text of this pattern."""
        return moment.strftime(self.strptime.replace("%f", "000"))

    @cached_property
    def strptime(self) -> str:
        """The same for Python."""
        return _LETTERS.sub(lambda part: _PARTS[part.group()][1], self.pattern)

    def reads(self, value: str) -> bool:
        """True where a text is a time by this pattern."""
        if not re.fullmatch(self.regex, value):
            return False
        try:
            datetime.strptime(value, self.strptime)  # noqa: DTZ007 (asked whether, not when)
        except ValueError:
            return False
        return True


FORMATS = [
    TimeFormat(f"{date}{between}{clock}")
    for date, between, clock in product(_DATES, (" ", "'T'", ":", ", "), _CLOCKS)
] + [TimeFormat(date) for date in _DATES]


def find_time_formats(values: Sequence[str]) -> list[TimeFormat]:
    """The formats by which every one of the texts is a time; several where days and months may be
    taken for each other."""
    some = list(dict.fromkeys(values))[:_ENOUGH]
    return [f for f in FORMATS if all(f.reads(value) for value in some)] if some else []


def find_leading_formats(lines: Sequence[str]) -> list[TimeFormat]:
    """The formats with a clock that a twentieth of the lines or more begin with, most of them
    first; of two that begin alike the longer."""
    found: dict[TimeFormat, int] = {}
    for line in lines:
        hits = [f for f in FORMATS if not f.is_date and re.match(rf"\[?({f.regex})", line)]
        if hits:
            longest = max(hits, key=lambda f: len(f.pattern))
            found[longest] = found.get(longest, 0) + 1
    often = [f for f, count in found.items() if count * 20 >= len(lines)]
    return sorted(often, key=lambda f: -found[f])


_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,(\d+))?")
_POINT = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.(\d+))?|[+-]?\d+(\.(\d+))?")


def find_decimals(values: Sequence[str], *, comma_first: bool) -> tuple[str, str] | None:
    """The locale and the Spark type of texts that are decimals with a comma (`1.234,50`), or with
    commas between thousands (`1,234.50`); None for others. `comma_first`: which of the two is
    meant by `1,234`, which can be both."""
    if not any("," in value for value in values):
        return None
    kinds = [("de-DE", _COMMA, ","), ("en-US", _POINT, ".")]
    for locale, looks, mark in kinds if comma_first else reversed(kinds):
        if all(map(looks.fullmatch, values)):
            return locale, _decimal(values, mark)
    return None


def _decimal(values: Sequence[str], mark: str) -> str:
    scale = max(len(value.partition(mark)[2]) for value in values)
    return f"decimal({min(18 + scale, 38)},{scale})"
