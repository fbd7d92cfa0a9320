"""What the rules say of a row, as bits of a few numbers: two columns a rule would be most of a kept
row, and most of what it costs to keep."""

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from ..spark.columns import CHECKS, REASONS

_BITS = 63
"""Of a bigint, without its sign."""


def pack(
    evaluated: Sequence[Column], unexpected: Sequence[Column], first: int = 0, room: int = 0
) -> Column:
    """The verdicts of every rule on a row as a struct. Args: booleans, never NULL, one a rule.
    first: number of the first of them. room: for how many rules, where others judge other rows."""
    before, behind = [F.lit(False)] * first, [F.lit(False)] * (room - first - len(evaluated))
    words = [
        *_words("e", [*before, *evaluated, *behind]),
        *_words("u", [*before, *unexpected, *behind]),
    ]
    return F.struct(*(words or [F.lit(0).alias("none")]))


def is_refused() -> Column:
    """Rows that have a reason to be."""
    return F.size(REASONS) > 0


def is_evaluated(number: int) -> Column:
    """Whether a rule was evaluated on a row."""
    return _bit("e", number)


def is_unexpected(number: int) -> Column:
    """Whether a row breaks a rule."""
    return _bit("u", number)


def _words(kind: str, flags: Sequence[Column]) -> list[Column]:
    bits = [
        F.when(flag, F.lit(1 << number % _BITS).cast("bigint")).otherwise(F.lit(0).cast("bigint"))
        for number, flag in enumerate(flags)
    ]
    words = [bits[first : first + _BITS] for first in range(0, len(bits), _BITS)]
    return [reduce(Column.bitwiseOR, word).alias(f"{kind}{n}") for n, word in enumerate(words)]


def _bit(kind: str, number: int) -> Column:
    word, bit = divmod(number, _BITS)
    return F.col(f"{CHECKS}.{kind}{word}").bitwiseAND(F.lit(1 << bit).cast("bigint")) != 0
