"""Python's strptime as Spark expressions: the same texts parse, without a Python worker."""

import re
import sys
import unicodedata
from datetime import UTC, datetime
from functools import lru_cache

from pyspark.sql import Column
from pyspark.sql import functions as F

_SPACE = r"[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
_LITERALS = frozenset("TZ0123456789") | frozenset(r"""!"#$&'()*+,-./:;<=>?@[\]^_`{|}~""")
"""Characters that Java and Python compare alike when case is ignored.

Letters such as `i` and `s` have Unicode variants.
"""
_MINUTE = r"[0-5]\p{Nd}"
_SECOND = rf"{_MINUTE}(?:\.\p{{Nd}}{{1,6}})?"
_DIRECTIVES = {
    "Y": r"(\p{Nd}{4})",
    "y": r"(\p{Nd}{2})",
    "m": r"(1[0-2]|0[1-9]|[1-9])",
    "d": r"(3[0-1]|[1-2]\p{Nd}|0[1-9]|[1-9]| [1-9])",
    "H": r"(2[0-3]|[0-1]\p{Nd}|\p{Nd})",
    "M": r"([0-5]\p{Nd}|\p{Nd})",
    "S": r"(6[0-1]|[0-5]\p{Nd}|\p{Nd})",
    "f": r"([0-9]{1,6})",
    "z": rf"(?:[+-](\p{{Nd}}{{2}})(?::{_MINUTE}(?::{_SECOND})?|{_MINUTE}(?:{_SECOND})?)|(?-i:Z))",
}
"""The groups of CPython's `_strptime`, one capture each; its `\\d` is any Unicode decimal digit."""

_USUAL = {
    "Y": "(?!0000)[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "(?:0[1-9]|1[0-2])",
    "d": "(?:0[1-9]|1[0-9]|2[0-8])",
    "H": "(?:[01][0-9]|2[0-3])",
    "M": "[0-5][0-9]",
    "S": "[0-5][0-9]",
    "f": "[0-9]{1,6}+",
    "z": "(?:[+-](?:[01][0-9]|2[0-3]):?[0-5][0-9]|(?-i:Z))",
}
"""What nearly every value looks like, and surely parses.

Full width, ASCII, a day that every month has.
"""


class NotTranslatable(Exception):
    """Raised when a format has parts that Spark cannot be shown to read as Python does."""


def check_format(text: str) -> None:
    """Raise ValueError when Python itself cannot write and read back this format."""
    datetime.strptime(datetime.now(UTC).strftime(text), text)


def translate_format(text: str, groups: dict[str, str]) -> tuple[str, list[str]]:
    """A strptime format as a Java regular expression, and its directives in order.

    Raises NotTranslatable.
    """
    pattern, directives, rest = "", [], text
    while rest:
        char, rest = rest[0], rest[1:]
        if char == "%":
            char, rest = rest[0], rest[1:]
            if char == "%":
                pattern += "%"
                continue
            if char not in groups or (char == "z" and rest):
                raise NotTranslatable(f"%{char} at this place of {text!r}")
            pattern += groups[char]
            directives.append(char)
        elif char.isspace():
            rest = rest.lstrip()
            pattern += _SPACE
        elif char in _LITERALS:
            pattern += char if char.isalnum() else "\\" + char
        else:
            raise NotTranslatable(f"{char!r} in {text!r}")
    if {"Y", "y"} <= set(directives) or len(set(directives)) < len(directives):
        raise NotTranslatable(f"one part of the date appears twice in {text!r}")
    # Python takes the first match from the left and then asks whether text is left over: the
    # atomic group keeps Java from trying another.
    return rf"(?i)\A(?>{pattern})\z", directives


@lru_cache(maxsize=1)
def _digits() -> tuple[str, str]:
    """Every Unicode decimal digit beyond ASCII, and the ASCII digit of the same value."""
    found = "".join(re.findall(r"\d", "".join(map(chr, range(128, sys.maxunicode + 1)))))
    return found, "".join(str(unicodedata.decimal(char)) for char in found)


def parses(column: Column, text: str) -> Column:
    """True where `datetime.strptime(value, text)` succeeds, else false.

    Raises NotTranslatable.
    """
    pattern, directives = translate_format(text, _DIRECTIVES)
    usual, _ = translate_format(text, _USUAL)

    def number_of(directive: str) -> Column:
        found = F.regexp_extract(column, pattern, directives.index(directive) + 1)
        return F.trim(F.translate(found, *_digits())).try_cast("int").alias(directive)

    parts = [number_of(directive) for directive in directives if directive in "YymdSz"]
    # One struct in an array: the lambda reads each part by name, so none is extracted twice.
    exists = (
        F.exists(F.array(F.struct(*parts)), lambda found: _is_moment(found, directives))
        if parts
        else F.lit(True)
    )
    return F.coalesce(
        F.when(column.rlike(usual), True).otherwise(column.rlike(pattern) & exists), F.lit(False)
    )


def _is_moment(found: Column, directives: list[str]) -> Column:
    """Whether parts that match the pattern make a moment that exists."""
    valid = F.lit(True)
    if "S" in directives:
        valid = valid & (
            found["S"] <= 59
        )  # the pattern lets leap seconds in, datetime then refuses them
    if "z" in directives:
        valid = valid & (F.coalesce(found["z"], F.lit(0)) <= 23)  # `Z` has no hours
    if "Y" in directives:
        valid = valid & (found["Y"] >= 1)
    if {"m", "d"} <= set(directives):
        year = (
            found["Y"]
            if "Y" in directives
            else found["y"] + 2000
            if "y" in directives
            else F.lit(1900)
        )
        valid = valid & (found["d"] <= _days(year, found["m"]))
    return valid


def _days(year: Column, month: Column) -> Column:
    """How many days a month has.

    A two-digit year may be read as 20xx: 19xx has the same leap years but for 1900, which `%y`
    never means.
    """
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    return (
        F.when(month.isin(4, 6, 9, 11), 30)
        .when(month == 2, F.when(leap, 29).otherwise(28))
        .otherwise(31)
    )
