"""A row that a proposed pipeline takes, made up: real values do not belong into a test."""

from datetime import datetime

from .layout import Layout
from .proposal import Proposal
from .times import TimeFormat

_MOMENT = datetime(2026, 1, 1)
_EPOCHS = {"timestamp_millis": 1_767_225_600_000, "timestamp_seconds": 1_767_225_600}
_KNOWN = {
    "string": "a",
    "boolean": True,
    "timestamp": "2026-01-01T00:00:00Z",
    "timestamp_ntz": "2026-01-01T00:00:00",
    "date": "2026-01-01",
    "binary": "",
}


def make_row(proposal: Proposal) -> dict[str, object]:
    """A value for each column of the source, written as its files write it."""
    row = {c: _make_value(type_, proposal.layout) for c, type_ in proposal.schema.items()}
    allowed = {rule.kwargs["column"]: rule.kwargs.get("value_set") for rule in proposal.rules}
    for column, name in proposal.names.items():
        function = proposal.select[name].partition("(")[0]
        row[column] = _EPOCHS.get(function, (allowed.get(name) or [row[column]])[0])
    return row


def _make_value(type_: str, layout: Layout) -> object:
    if type_.startswith("array<"):
        return []
    if type_.startswith(("struct<", "map<")):
        return {}
    pattern = layout.options.get("dateFormat" if type_ == "date" else "timestampFormat")
    if pattern and type_ in ("date", "timestamp"):
        return TimeFormat(pattern).write(_MOMENT)
    return _KNOWN.get(type_, 1)
