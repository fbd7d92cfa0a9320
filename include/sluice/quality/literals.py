"""Values of a YAML file as Great Expectations reads them.

What could only fail later is refused here.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, SparkSession
from pyspark.sql import types as T

from ..errors import SpecError
from ..spark.jvm import jvm_of

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(_DATE.pattern + r"[ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?")


class HandToGX(Exception):
    """Raised for a valid rule that is not provably the same as one pass over columns.

    Great Expectations runs it on the table.
    """


@dataclass(frozen=True, eq=False)
class Arguments:
    """What a rule says: its columns with their types, and its kwargs."""

    columns: list[Column]
    names: list[str]
    types: list[T.DataType]
    kwargs: dict
    where: str

    def refuse(self, what: str, value: object = None, do: str = "") -> SpecError:
        """The error for this rule."""
        return SpecError(what, where=self.where, value=value, do=do)

    @property
    def described(self) -> str:
        """`column 'amount' (double)`."""
        return " and ".join(
            f"column {name!r} ({type_.simpleString()})"
            for name, type_ in zip(self.names, self.types, strict=True)
        )


def family(type_: T.DataType) -> str:
    """The kind of values that may be compared: number, moment, text, boolean or binary.

    Empty for nested and other types.
    """
    kinds: dict[str, type | tuple[type, ...]] = {
        "number": T.NumericType,
        "moment": (T.DateType, T.TimestampType, T.TimestampNTZType),
        "text": T.StringType,
        "boolean": T.BooleanType,
        "binary": T.BinaryType,
    }
    return next((kind for kind, classes in kinds.items() if isinstance(type_, classes)), "")


def parse_moment(text: str) -> date | datetime | None:
    """A date or a timestamp written as ISO 8601; None for any other text."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
        return datetime.fromisoformat(text) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:
        return None


def in_utc(value: Any) -> Any:
    """Read a timestamp without a zone as UTC, also inside lists and mappings; leave all else."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if isinstance(value, dict):
        return {key: in_utc(item) for key, item in value.items()}
    return [in_utc(item) for item in value] if isinstance(value, (list, tuple)) else value


def read_bound(args: Arguments, name: str) -> float | date | datetime | None:
    """A bound as Great Expectations coerces it.

    Every number becomes a float; a text becomes a float, a date or a timestamp.
    """
    value = args.kwargs.get(name)
    if isinstance(value, str):
        value = _read_text(value)
    if value is not None and isinstance(value, (int, float)):
        return float(value)
    if (
        value is None
        and args.kwargs.get(name) is not None
        or value is not None
        and not isinstance(value, date)
    ):
        raise args.refuse(
            f"{name} is neither a number, a date nor a timestamp",
            args.kwargs[name],
            "Write 10, '2026-01-31' or '2026-01-31 10:00:00'",
        )
    return in_utc(value)


def _read_text(text: str) -> float | date | datetime | None:
    try:
        return float(text)
    except ValueError:
        return parse_moment(text)


def read_bounds(args: Arguments, read=read_bound) -> tuple:
    """min_value and max_value; at least one, in order."""
    low, high = read(args, "min_value"), read(args, "max_value")
    if low is None and high is None:
        raise args.refuse("min_value and max_value are both missing", do="Write at least one")
    if None not in (low, high):
        if isinstance(low, float) != isinstance(high, float) or isinstance(
            low, datetime
        ) != isinstance(high, datetime):
            raise args.refuse(
                "min_value and max_value are of different kinds",
                f"{low}, {high}",
                "Write two numbers, two dates or two timestamps",
            )
        if low > high:
            raise args.refuse(
                "min_value is greater than max_value",
                f"{low:g} > {high:g}" if isinstance(low, float) else f"{low} > {high}",
                "Swap them",
            )
    return low, high


def read_integer(args: Arguments, name: str) -> float | None:
    """A length. Raises SpecError unless it is a whole number."""
    value = args.kwargs.get(name)
    if value is None or (
        isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
    ):
        return None if value is None else float(value)
    raise args.refuse(f"{name} is not a whole number", value, "Write a number of characters")


def read_flag(args: Arguments, name: str) -> bool:
    """A switch that is off by default. Raises SpecError unless it is true or false."""
    value = args.kwargs.get(name)
    if value not in (None, True, False):
        raise args.refuse(f"{name} is not a boolean", value, "Write true or false")
    return bool(value)


def read_set(args: Arguments) -> list:
    """The values of a set, all comparable with the column."""
    values = args.kwargs.get("value_set")
    if not isinstance(values, list):
        raise args.refuse("value_set is not a list", values, "Write value_set: [a, b]")
    kind = family(args.types[0])
    for value in values:
        if value is None:
            raise args.refuse(
                "value_set holds null, and with it Spark calls no value unexpected",
                do="Remove it; NULLs are skipped anyway",
            )
        if kind and _kind_of(value, kind) != kind:
            raise args.refuse(
                f"{args.described} cannot hold this value of value_set",
                value,
                f"Write {_EXAMPLES[kind]}",
            )
    if not kind:
        raise HandToGX(f"{args.described} is nested or of a rare type")
    return [in_utc(value) for value in values]


_EXAMPLES = {
    "number": "numbers, without quotes",
    "text": "texts, in quotes ('1', 'yes')",
    "boolean": "true or false",
    "moment": "dates ('2026-01-31') or timestamps ('2026-01-31 10:00:00')",
    "binary": "another rule; binary values cannot be listed",
}


def _kind_of(value: object, wanted: str) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, date) or (
        wanted == "moment" and isinstance(value, str) and parse_moment(value)
    ):
        return "moment"
    return "text" if isinstance(value, str) else ""


def check_regex(args: Arguments, regex: object) -> str:
    """A regular expression that Java compiles. Raises SpecError with Java's own explanation."""
    if not isinstance(regex, str):
        raise args.refuse("a regular expression is a text", regex, "Write it in quotes")
    try:
        jvm_of(SparkSession.active()).java.util.regex.Pattern.compile(regex)
    except IllegalArgumentException as error:
        reason = str(error).splitlines()[0]
        raise args.refuse(
            f"not a regular expression that Java (and so Spark) can read: {reason}",
            regex,
            "Mend it",
        ) from None
    return regex
