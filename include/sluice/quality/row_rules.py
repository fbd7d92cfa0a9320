"""One small function per expectation type: kwargs -> a column that says which values are expected.

NULL, `mostly` and row conditions are none of their business: `rules.py` treats them alike for all.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from . import strptime
from .literals import (
    Arguments,
    HandToGX,
    check_regex,
    family,
    read_bounds,
    read_flag,
    read_integer,
    read_set,
)

_PREFIX = re.compile(r"\^[A-Za-z0-9_ -]+")
"""Regular expressions that ask for nothing but how a text begins."""


def _null(args: Arguments) -> Column:
    return args.columns[0].isNull()


def _not_null(args: Arguments) -> Column:
    return args.columns[0].isNotNull()


def _within(args: Arguments, value: Column, low, high) -> Column:
    parts = []
    if low is not None:
        parts.append(value > F.lit(low) if read_flag(args, "strict_min") else value >= F.lit(low))
    if high is not None:
        parts.append(value < F.lit(high) if read_flag(args, "strict_max") else value <= F.lit(high))
    return reduce(Column.__and__, parts)


def _between(args: Arguments) -> Column:
    low, high = read_bounds(args)
    bound = low if low is not None else high
    kind = "number" if isinstance(bound, float) else "moment"
    if family(args.types[0]) != kind:
        raise args.refuse(
            f"{args.described} cannot be compared with {bound!s}, "
            f"a {'number' if kind == 'number' else 'date or timestamp'}",
            do="Great Expectations compares numbers with numbers and times with times; "
            "give the column that type in the schema or a transform",
        )
    return _within(args, args.columns[0], low, high)


def _in_set(args: Arguments) -> Column:
    return args.columns[0].isin(read_set(args))


def _not_in_set(args: Arguments) -> Column:
    return ~_in_set(args)


def _as_text(args: Arguments) -> Column:
    """The column where a text is asked for; Spark renders numbers and times itself."""
    if not family(args.types[0]):
        raise HandToGX(f"{args.described} is not text")
    if isinstance(args.types[0], T.BinaryType):
        raise args.refuse(
            f"{args.described} is not text",
            do="Decode it in a transform, or declare the column as string",
        )
    return args.columns[0]


def _match(args: Arguments) -> Column:
    text, regex = _as_text(args), check_regex(args, args.kwargs["regex"])
    if args.types[0] == T.StringType() and _PREFIX.fullmatch(regex):
        return text.startswith(regex[1:])  # by bytes: no text of Java's is made of it
    return text.rlike(regex)


def _match_list(args: Arguments) -> Column:
    text, patterns, how = _as_text(args), _regex_list(args), args.kwargs.get("match_on") or "any"
    if how == "any":
        return text.rlike(check_regex(args, "|".join(patterns)))
    if how == "all":
        return reduce(Column.__and__, [text.rlike(pattern) for pattern in patterns])
    raise args.refuse("match_on is neither 'any' nor 'all'", how, "Write one of them")


def _not_match_list(args: Arguments) -> Column:
    text = _as_text(args)
    return reduce(Column.__and__, [~text.rlike(pattern) for pattern in _regex_list(args)])


def _regex_list(args: Arguments) -> list[str]:
    patterns = args.kwargs["regex_list"]
    if not isinstance(patterns, list) or not patterns:
        raise args.refuse(
            "regex_list is not a list of regular expressions",
            patterns,
            "Write regex_list: ['^A', '^B']",
        )
    return [check_regex(args, pattern) for pattern in patterns]


def _length_between(args: Arguments) -> Column:
    text, (low, high) = _as_text(args), read_bounds(args, read_integer)
    within = _within(args, F.length(text), low, high)
    if low is None and args.types[0] == T.StringType():
        # It has no more characters than bytes, and these are counted already.
        return _within(args, F.octet_length(text), None, high) | within
    return within


def _length_equal(args: Arguments) -> Column:
    length = read_integer(args, "value")
    if length is None:
        raise args.refuse("value is missing", do="Write a number of characters")
    return F.length(_as_text(args)) == F.lit(length)


def _strftime(args: Arguments) -> Column:
    text = args.kwargs["strftime_format"]
    if not isinstance(args.types[0], T.StringType):
        raise args.refuse(
            f"{args.described} is not text, so it has no format",
            do="Remove the rule: the schema has read the value as this type already",
        )
    try:
        strptime.check_format(text)
        return strptime.parses(args.columns[0], text)
    except (ValueError, TypeError) as error:
        raise args.refuse(
            f"not a format that Python can write and read: {error}",
            text,
            "Write one such as '%Y-%m-%d %H:%M:%S'",
        ) from None
    except strptime.NotTranslatable as error:
        raise HandToGX(f"{error} is read by Python only") from None


def has_declared_type(args: Arguments) -> bool:
    """Whether the column's type is one of those named; names of other engines are passed over."""
    names = args.kwargs["type_list"] if "type_list" in args.kwargs else [args.kwargs["type_"]]
    if not isinstance(names, list):
        raise args.refuse(
            "type_list is not a list", names, "Write type_list: [StringType, IntegerType]"
        )
    classes = [getattr(T, str(name), None) for name in names]
    known = tuple(
        class_ for class_ in classes if isinstance(class_, type) and issubclass(class_, T.DataType)
    )
    if not known:
        raise args.refuse(
            "no type that Spark knows",
            names,
            "Write Spark's class names: StringType, IntegerType, LongType, DoubleType, "
            "TimestampType, ...",
        )
    return isinstance(args.types[0], known)


def _of_types(args: Arguments) -> Column:
    return F.lit(has_declared_type(args))


def _check_comparable(args: Arguments) -> None:
    first, second = (family(type_) for type_ in args.types)
    if not first and not second and args.types[0] == args.types[1]:
        raise HandToGX(f"{args.described} are nested or of rare types")
    if not first or first != second:
        raise args.refuse(
            f"{args.described} cannot be compared",
            do="Give both columns types that can: two numbers, two times or two texts",
        )


def _greater(args: Arguments) -> Column:
    _check_comparable(args)
    first, second = args.columns
    return (
        (first >= second) | first.eqNullSafe(second)
        if read_flag(args, "or_equal")
        else first > second
    )


def _equal(args: Arguments) -> Column:
    _check_comparable(args)
    return args.columns[0].eqNullSafe(args.columns[1])


@dataclass(frozen=True)
class RowType:
    """An expectation type that is evaluated row by row."""

    expected: Callable[[Arguments], Column]
    """NULL where it cannot tell, which Great Expectations on Spark counts as expected."""
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    columns: tuple[str, ...] = ("column",)
    looks_at_null: bool = False


_BOUNDS = ("min_value", "max_value", "strict_min", "strict_max")
_PAIR = ("column_A", "column_B")

ROW_TYPES: dict[str, RowType] = {
    "expect_column_values_to_be_null": RowType(_null, looks_at_null=True),
    "expect_column_values_to_not_be_null": RowType(_not_null, looks_at_null=True),
    "expect_column_values_to_be_between": RowType(_between, optional=_BOUNDS),
    "expect_column_values_to_be_in_set": RowType(_in_set, ("value_set",)),
    "expect_column_values_to_not_be_in_set": RowType(_not_in_set, ("value_set",)),
    "expect_column_values_to_match_regex": RowType(_match, ("regex",)),
    "expect_column_values_to_not_match_regex": RowType(lambda args: ~_match(args), ("regex",)),
    "expect_column_values_to_match_regex_list": RowType(
        _match_list, ("regex_list",), ("match_on",)
    ),
    "expect_column_values_to_not_match_regex_list": RowType(_not_match_list, ("regex_list",)),
    "expect_column_value_lengths_to_be_between": RowType(_length_between, optional=_BOUNDS),
    "expect_column_value_lengths_to_equal": RowType(_length_equal, ("value",)),
    "expect_column_values_to_match_strftime_format": RowType(_strftime, ("strftime_format",)),
    "expect_column_values_to_be_of_type": RowType(_of_types, ("type_",), looks_at_null=True),
    "expect_column_values_to_be_in_type_list": RowType(
        _of_types, ("type_list",), looks_at_null=True
    ),
    "expect_column_pair_values_a_to_be_greater_than_b": RowType(
        _greater, optional=("or_equal", "ignore_row_if"), columns=_PAIR
    ),
    "expect_column_pair_values_to_be_equal": RowType(
        _equal, optional=("ignore_row_if",), columns=_PAIR
    ),
}
"""The row-level expectation types: only these can quarantine."""

DECIDED_BY_TYPE = frozenset(
    {"expect_column_values_to_be_of_type", "expect_column_values_to_be_in_type_list"}
)
"""The column's type answers for every row, so neither `mostly` nor counts apply."""
