"""Durations, sizes and shares as people write them: `2 days`, `256 MB`, `5 %`."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_BYTES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(second|minute|hour|day|week)s?\s*")
_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%\s*")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB)\s*", re.IGNORECASE)


def parse_duration(value: object) -> timedelta:
    """Turn `2 days` into a timedelta. Raises ValueError naming the accepted units."""
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(str(value)) if isinstance(value, str) else None
    if match is None:
        raise ValueError(
            "not a duration; write a number and a unit: '30 seconds', '15 minutes', '6 hours', '2 "
            "days' or '1 week'"
        )
    return timedelta(seconds=float(match[1]) * _SECONDS[match[2]])


def format_duration(value: timedelta) -> str:
    """Write a timedelta in the largest unit that divides it: 172800 s -> `2 days`."""
    seconds = value.total_seconds()
    unit = next(
        (u for u, s in reversed(_SECONDS.items()) if seconds and seconds % s == 0), "second"
    )
    count = seconds / _SECONDS[unit]
    return f"{count:.15g} {unit}{'' if count == 1 else 's'}"


def parse_size(value: object) -> int:
    """Turn `256 MB` into bytes (powers of ten). Raises ValueError naming the accepted units."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    match = _SIZE.fullmatch(str(value)) if isinstance(value, str) else None
    if match is None:
        raise ValueError("not a size; write a number and a unit: '500 KB', '256 MB' or '2 GB'")
    return int(float(match[1]) * _BYTES[match[2].upper()])


def parse_share(value: object) -> float:
    """Turn `5 %` into 0.05. Raises ValueError for anything else, a bare number too: nobody knows
    whether 1 is a hundredth or all."""
    match = _SHARE.fullmatch(str(value)) if isinstance(value, str) else None
    if match is None or float(match[1]) > 100:
        raise ValueError("not a share; write a percentage up to 100: '5 %' or '0.1 %'")
    return float(Decimal(match[1]) / 100)  # the number nearest to it, as 7 / 1000 is to 0.7 %


def format_share(value: float) -> str:
    """Write 0.05 as `5 %`."""
    return f"{value * 100:.12g} %"


def _pattern(text: str) -> dict:
    return {"type": "string", "pattern": text}


Duration = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(_pattern(r"^\s*\d+(\.\d+)?\s*(second|minute|hour|day|week)s?\s*$")),
]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema(_pattern(r"^\s*\d+(\.\d+)?\s*([BbKkMmGgTt][Bb]?)\s*$")),
]
Share = Annotated[
    float,
    BeforeValidator(parse_share),
    PlainSerializer(format_share, return_type=str),
    WithJsonSchema(_pattern(r"^\s*\d+(\.\d+)?\s*%\s*$")),
]
