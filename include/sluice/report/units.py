"""Numbers, times and foreign text as people read them, the same in text and HTML."""

import unicodedata
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_count(rows: int | None) -> str:
    """`1,204`; a dash when nobody counted."""
    return "-" if rows is None else f"{rows:,}"


def format_amount(amount: int, noun: str) -> str:
    """`1 row`, `1,204 rows`."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}"


def format_percent(part: int, whole: int) -> str:
    """`0.51%`; never `0%` for some, and never `100%` for not quite all. A dash for what is no
    share: below nothing, or more than the whole."""
    if not 0 <= part <= whole:
        return "-"
    if part == 0:
        return "0%"
    share = 100 * part / whole
    if share < 0.01:
        return "<0.01%"
    if 99.99 < share < 100:
        return ">99.99%"
    digits = 0 if share == 100 else 2 if share < 10 or share > 99 else 1
    return f"{share:.{digits}f}%"


def format_bytes(size: int) -> str:
    """`12.4 MB`, powers of 1000."""
    if size < 1000:
        return f"{size} B"
    value, units = size / 1000, ["kB", "MB", "GB", "TB", "PB"]
    while value >= 999.95 and len(units) > 1:
        value, units = value / 1000, units[1:]
    return f"{value:.1f} {units[0]}"


def format_seconds(seconds: float) -> str:
    """`0.42 s`, `41.2 s`, `3 min 12 s`, `2 h 05 min`."""
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def to_utc(moment: datetime) -> datetime:
    """The same moment in UTC; a time without a zone is UTC already."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def format_time(moment: datetime | None) -> str:
    """`2026-01-03 06:00:12 UTC`; a dash for None."""
    return "-" if moment is None else f"{to_utc(moment):%Y-%m-%d %H:%M:%S} UTC"


def from_millis(millis: int | None) -> datetime | None:
    """Epoch milliseconds as a UTC time; None for none, for Spark's start value 0, and beyond the
    calendar."""
    if not millis or millis < 0:
        return None
    try:
        return _EPOCH + timedelta(milliseconds=millis)
    except OverflowError:
        return None


def format_watermark(millis: int | None) -> str:
    """A watermark as a UTC time, or in words when there is none yet."""
    moment = from_millis(millis)
    if moment is None:
        return f"{millis} ms" if millis and millis > 0 else "not set yet"
    return format_time(moment)


def printable(text: str) -> str:
    """Text without power: control, escape and direction-changing characters shown as `\\x1b`, so
    they neither move a cursor nor reorder a page."""
    return "".join(
        _visible(char)
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        else char
        for char in text
    )


def _visible(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def quote_value(text: str, width: int = 60) -> str:
    """A sample value in quotes, cut to `width`: pasted into a spreadsheet, `"=1+1"` is not a
    formula."""
    shown = printable(text)
    return f'"{shown if len(shown) <= width else shown[: width - 3] + "..."}"'
