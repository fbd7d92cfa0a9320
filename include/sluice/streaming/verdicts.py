"""What the rules say of a row, as bits of a few numbers: two columns a rule would be most of a kept
row, and most of what it costs to keep."""

from collections.abc import Iterable, Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from ..spark.columns import CHECKS, REASONS

_BITS = 63
"""Of a bigint, without its sign."""


def mark(
    evaluated: Sequence[Column], unexpected: Sequence[Column], first: int = 0, room: int = 0
) -> dict[str, Column]:
    """The verdicts of every rule on a row, as numbers in columns of their own. Args: booleans,
    never NULL, one a rule. first: number of the first of them. room: for how many rules, where
    others judge other rows."""
    before, behind = [F.lit(False)] * first, [F.lit(False)] * (room - first - len(evaluated))
    seen, broken = ([*before, *flags, *behind] for flags in (evaluated, unexpected))
    return _words("e", seen) | _words("u", broken)


def pack(marks: Iterable[str]) -> Column:
    """The numbers of `mark` as a struct. Args: marks: names of their columns."""
    words = [F.col(name).alias(name.removeprefix("_")) for name in marks]
    return F.struct(*(words or [F.lit(0).alias("none")]))


def breaks(numbers: Iterable[int]) -> Column:
    """Whether a row breaks one of some rules, by what `mark` says of it."""
    masks: dict[int, int] = {}
    for word, bit in (divmod(number, _BITS) for number in numbers):
        masks[word] = masks.get(word, 0) | 1 << bit
    found = [_has(f"_u{word}", mask) for word, mask in masks.items()]
    return reduce(Column.__or__, found, F.lit(False))


def is_refused() -> Column:
    """Rows that have a reason to be."""
    return F.size(REASONS) > 0


def is_evaluated(number: int) -> Column:
    """Whether a rule was evaluated on a row."""
    return _bit("e", number)


def is_unexpected(number: int) -> Column:
    """Whether a row breaks a rule."""
    return _bit("u", number)


def _words(kind: str, flags: Sequence[Column]) -> dict[str, Column]:
    bits = [
        F.when(flag, F.lit(1 << number % _BITS).cast("bigint")).otherwise(F.lit(0).cast("bigint"))
        for number, flag in enumerate(flags)
    ]
    words = [bits[first : first + _BITS] for first in range(0, len(bits), _BITS)]
    return {f"_{kind}{n}": reduce(Column.bitwiseOR, word) for n, word in enumerate(words)}


def _bit(kind: str, number: int) -> Column:
    word, bit = divmod(number, _BITS)
    return _has(f"{CHECKS}.{kind}{word}", 1 << bit)


def _has(word: str, bits: int) -> Column:
    return F.col(word).bitwiseAND(F.lit(bits).cast("bigint")) != 0
