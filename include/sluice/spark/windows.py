"""Groups that are windows of time, as Spark's `window` cuts them: `window(at, '1 hour').start`.

A call of `window` is no value of a row: Spark puts it into the plan as an operator of its own. Here
is what it means for one row, in functions that are; and the length of time that one window takes.
"""

import re
from dataclasses import dataclass

_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
    "week": 7 * 86400 * 10**6,
}
_LENGTH = re.compile(rf"([+-]?\d+)\s+({'|'.join(_MICROS)})s?\b", re.I)
_NAME = r"`?\w+`?"
_CALL = re.compile(
    rf"\bwindow\(\s*({_NAME}(?:\.{_NAME})*)((?:\s*,\s*'[^']*'){{1,3}})\s*\)(\.start\b|\.end\b)?",
    re.I,
)
_ONE = "_window"


@dataclass(frozen=True)
class Windows:
    """Windows over a column, microseconds: each is so long, one begins behind another, and where
    they are counted from."""

    column: str
    length: int
    slide: int
    offset: int

    @property
    def overlap(self) -> bool:
        """Whether a row lies in several, or in one at times."""
        return self.slide != self.length

    def start(self, back: str = "0") -> str:
        """SQL of where a window begins: the last that has begun, or so many microseconds before."""
        time = f"CAST({self.column} AS TIMESTAMP)"
        since = f"pmod(unix_micros({time}) - {self.offset}, {self.slide})"
        return f"timestamp_micros(unix_micros({time}) - {since} - {back})"

    def one(self, back: str = "0") -> str:
        """SQL of such a window."""
        end = f"timestamp_micros(unix_micros({self.start(back)}) + {self.length})"
        return f"named_struct('start', {self.start(back)}, 'end', {end})"

    def all(self) -> str:
        """SQL of the list of those that a row lies in."""
        most = -(-self.length // self.slide)
        backs = f"transform(sequence(0, {most - 1}), n -> n * {self.slide}L)"
        found = f"transform({backs}, back -> {self.one('back')})"
        if self.length % self.slide:
            found = f"filter({found}, one -> one.end > CAST({self.column} AS TIMESTAMP))"
        return f"if({self.column} IS NULL, NULL, {found})"


def spell_out(said: str) -> str:
    """SQL of a group without a call of `window`: of windows that overlap the list of those that a
    row lies in, or of what is made of each. The same where there is none, or one of another
    shape."""
    found = _find(said)
    if found is None:
        return said
    call, windows = found
    part = (call[3] or "").lower()
    if not windows.overlap:
        return said.replace(
            call[0], f"({windows.start()})" if part == ".start" else f"({windows.one()}){part}"
        )
    if said.strip() == call[0] and not part:
        return windows.all()
    each = said.replace(call[0], f"{_ONE}{part}")
    return f"transform({windows.all()}, {_ONE} -> {each})"


def read_window(said: str) -> tuple[str, str] | None:
    """The column whose windows' beginning a group is, and the length of time that one takes, as
    SQL's INTERVAL has it; None for SQL of another shape."""
    found = _find(said)
    if found is None or said.strip() != found[0][0] or (found[0][3] or "").lower() != ".start":
        return None
    return found[1].column.strip("`"), f"{found[1].length} MICROSECOND"


def _find(said: str) -> tuple[re.Match, Windows] | None:
    calls = list(_CALL.finditer(said))
    if not calls or any(call[0] != calls[0][0] for call in calls):
        return None
    told = [_read(text) for text in re.findall(r"'([^']*)'", calls[0][2])]
    lengths = [length for length in told if length is not None]
    if len(lengths) < len(told) or min(lengths[:2]) <= 0:
        return None
    length, slide, offset = (*lengths, *(lengths[0], 0)[len(lengths) - 1 :])
    return calls[0], Windows(calls[0][1], length, slide, offset)


def _read(text: str) -> int | None:
    """Microseconds of `1 hour 30 minutes`; None for what has no fixed length."""
    rest = re.sub(r"^\s*interval\b", "", text, flags=re.I)
    parts = _LENGTH.findall(rest)
    if not parts or _LENGTH.sub("", rest).strip():
        return None
    return sum(int(number) * _MICROS[unit.lower()] for number, unit in parts)
