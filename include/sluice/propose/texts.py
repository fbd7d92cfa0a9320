"""Times, decimals and levels in what is text or number at first sight."""

import re
from collections import Counter
from collections.abc import Sequence

from .columns import count_values
from .layout import Layout
from .records import Record
from .times import TimeFormat, find_decimals, find_leading_formats, find_time_formats

_EPOCHS = {"timestamp_millis": (10**12, 4 * 10**12), "timestamp_seconds": (10**9, 4 * 10**9)}
_TIMELY = re.compile(r"time|date|(^|_)(at|ts)$|At$", re.I)
_LEVEL = r"\b(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b"
_LINES = 2_000


def read_texts(
    layout: Layout, schema: dict[str, str], records: Sequence[Record]
) -> tuple[Layout, dict[str, str]]:
    """Times in one format and decimals in one locale become types, with the options that Spark
    reads them by; what cannot be told is noted."""
    texts = {
        column: [str(value) for value in count_values(records, column)]
        for column, type_ in schema.items()
        if type_ in ("string", "double", "bigint")
    }
    layout, decimals = _read_decimals(layout, texts)
    layout, times = _read_times(layout, schema, texts)
    return layout, schema | decimals | times


def _read_decimals(layout: Layout, texts: dict[str, list[str]]) -> tuple[Layout, dict[str, str]]:
    comma_first = layout.options.get("sep") == ";"
    found = {
        column: decimals
        for column, values in texts.items()
        if (decimals := find_decimals(values, comma_first=comma_first))
    }
    locales = Counter(locale for locale, _ in found.values())
    if not locales:
        return layout, {}
    locale = locales.most_common(1)[0][0]
    left = [column for column, (its, _) in found.items() if its != locale]
    if left:
        layout = layout.noting(f"{', '.join(left)}: decimals of another country, left as text")
    if locale != "en-US":
        layout = layout.with_options(locale=locale)
    return layout, {column: type_ for column, (its, type_) in found.items() if its == locale}


def _read_times(
    layout: Layout, schema: dict[str, str], texts: dict[str, list[str]]
) -> tuple[Layout, dict[str, str]]:
    found = {
        column: formats
        for column, values in texts.items()
        if schema[column] == "string" and (formats := find_time_formats(values))
    }
    types: dict[str, str] = {}
    for kind, option in (("timestamp", "timestampFormat"), ("date", "dateFormat")):
        here = {c: f for c, f in found.items() if f[0].is_date == (kind == "date")}
        if not here:
            continue
        format = Counter(f[0] for f in here.values()).most_common(1)[0][0]
        if kind in schema.values():  # which are read without a format
            layout = layout.noting(_say_left(list(here), format, f"other {kind}s are ISO"))
            continue
        left = [column for column, formats in here.items() if format not in formats]
        if left:
            layout = layout.noting(_say_left(left, here[left[0]][0], f"one {option} is for all"))
        layout = layout.with_options(**{option: format.pattern})
        types |= dict.fromkeys((column for column in here if column not in left), kind)
        swapped = set.intersection(*({f.order for f in fs} for fs in here.values())) - {
            format.order
        }
        if swapped:
            layout = layout.noting(
                f"{option}: {format.pattern} is a guess: no day is beyond 12, so days may be months"
            )
    return layout, types


def _say_left(columns: list[str], format: TimeFormat, why: str) -> str:
    return (
        f"{', '.join(columns)}: left as text ({why}); in SQL "
        f"try_to_timestamp({columns[0]}, '{format.pattern}')"
    )


def find_epochs(records: Sequence[Record], schema: dict[str, str]) -> dict[str, str]:
    """Columns of whole numbers that are moments, by size and name -> the SQL that makes them
    times."""
    made = {}
    for column in (c for c, type_ in schema.items() if type_ == "bigint"):
        values = [int(value) for value in count_values(records, column)]
        for function, (low, high) in _EPOCHS.items():
            named = _TIMELY.search(column) or column.lower() == "timestamp"
            if values and all(low <= v < high for v in values) and named:
                made[column] = f"{function}(`{column}`)"
                break
    return made


def lacks_zone(records: Sequence[Record], column: str) -> bool:
    """True where texts say the hour and not the zone."""
    values = [value for value in count_values(records, column) if isinstance(value, str)]
    return any(":" in v and not re.search(r"(Z|[+-]\d{2}:?\d{2})$", v) for v in values)


def describe_lines(lines: Sequence[str]) -> dict[str, tuple[str, float]]:
    """Columns that the lines of a log hold: column -> the SQL that finds it, and the share of lines
    that have it."""
    some = list(lines[:: max(len(lines) // _LINES, 1)])
    formats = find_leading_formats(some)
    made = {}
    if formats:
        begins = re.compile("|".join(rf"\[?{format.regex}" for format in formats))
        tried = ",\n    ".join(_find_time(format) for format in formats)
        sql = f"coalesce(\n    {tried}\n  )" if len(formats) > 1 else tried
        made["logged_at"] = (sql, sum(bool(begins.match(line)) for line in some) / len(some))
    levels = sum(bool(re.search(_LEVEL, line)) for line in some)
    if levels * 20 >= len(some):
        sql = f"nullif(regexp_extract(value, r'{_LEVEL}', 1), '')"
        made["level"] = (sql, levels / len(some))
    return made


def _find_time(format: TimeFormat) -> str:
    found = rf"regexp_extract(value, r'^\[?({format.regex})', 1)"
    return f'try_to_timestamp({found}, "{format.pattern}")'
