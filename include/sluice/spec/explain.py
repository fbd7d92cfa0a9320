"""What is wrong with the fields of a pipeline file, in sentences: field, value, line, advice."""

import json
import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ..errors import suggest
from .expectations import suggest_type
from .fields import fields_at, home_of
from .lines import At, Lines
from .model import FieldError

_WORDS = {
    "list_type": "not a list",
    "string_type": "not a text",
    "dict_type": "not a mapping",
    "model_type": "not a mapping",
    "bool_type": "neither true nor false",
    "bool_parsing": "neither true nor false",
    "int_type": "not a whole number",
    "int_parsing": "not a whole number",
    "int_from_float": "not a whole number",
    "time_delta_type": "not a duration; write a number and a unit: '15 minutes'",
    "datetime_type": "not a date or a moment; write 2026-01-31 or '2026-01-31 06:00'",
    "datetime_parsing": "not a date or a moment; write 2026-01-31 or '2026-01-31 06:00'",
    "datetime_from_date_parsing": "not a date or a moment; write 2026-01-31 or '2026-01-31 06:00'",
    "invalid_key": "a field's name that YAML takes for something else than text",
    "extra_forbidden": "unknown field; remove it or mend its spelling",
}
"""Kind of an error -> what is said of it instead of pydantic's sentence."""


@dataclass(frozen=True)
class _Fault:
    """One wrong field. `at`: as the file has it. `kind`: what pydantic calls the error."""

    at: At
    kind: str
    message: str
    value: Any
    context: dict[str, Any]


def explain(error: ValidationError, raw: dict, lines: Lines, secret: re.Pattern) -> str:
    """One line a wrong field: its path, what is wrong, the value, the line, what to write.

    Args: raw: the file as it was read. secret: names whose values are not shown.
    """
    faults = [_read(item, lines) for item in error.errors(include_url=False)]
    groups: dict[At, list[_Fault]] = {}
    for fault in faults:
        groups.setdefault(fault.at, []).append(fault)
    told = {at: _merge(group) for at, group in groups.items() if not _is_deeper(at, group, groups)}
    advice = {at: _advise(fault, raw) for at, fault in told.items()}
    meant = {
        (*at[:-1], name)
        for at, text in advice.items()
        if told[at].kind == "extra_forbidden"
        for name in re.findall("^Did you mean '(.+?)'", text)
    }
    shown = {at: fault for at, fault in told.items() if fault.kind != "missing" or at not in meant}
    said = [_write(fault, advice[at], lines, secret) for at, fault in shown.items()]
    if not all(advice[at] for at in shown):
        said[-1] += " `sluice schema` prints every field there is"
    return "\n  ".join(said)


def _read(item: Any, lines: Lines) -> _Fault:
    """An error by the path that the file has: without the kinds of types that pydantic tried."""
    kind, context, loc = item["type"], item.get("ctx", {}), tuple(item["loc"])
    at, _ = lines.find(loc)
    if kind == "missing" and loc[-1:] != at[-1:]:
        at = (*at, loc[-1])
    message = _WORDS.get(kind, item["msg"].removeprefix("Value error, "))
    value = item["input"]
    if kind == "unknown_kind":
        at = (*at, "kind")
        value = value.get("kind") if isinstance(value, dict) else value
    return _Fault(at, kind, message, value, context)


def _is_deeper(at: At, group: list[_Fault], groups: dict[At, Any]) -> bool:
    """True where a choice failed only because of a field within, which has its own sentence."""
    below = any(other[: len(at)] == at and len(other) > len(at) for other in groups)
    return below and all(fault.kind in ("literal_error", "model_type") for fault in group)


def _merge(group: list[_Fault]) -> _Fault:
    """What is wrong with a field that may be of several types, as one fault."""
    if len(group) > 1 and isinstance(group[0].value, str):
        group = [fault for fault in group if fault.kind != "model_type"] or group
    first, *others = sorted(group, key=lambda fault: fault.kind == "literal_error")
    also = [f.message.removeprefix("Input should be ") for f in others]
    message = "; or ".join(dict.fromkeys([first.message, *also]))
    return _Fault(first.at, first.kind, message, first.value, first.context)


def _advise(fault: _Fault, raw: dict) -> str:
    """What to write instead; empty where the message says it."""
    name, value = str(fault.at[-1]) if fault.at else "", fault.value
    if isinstance(raised := fault.context.get("error"), FieldError):
        return raised.do
    if fault.kind == "extra_forbidden":
        return _advise_field(name, fault.at, raw)
    if fault.kind in ("literal_error", "unknown_kind") and isinstance(value, str):
        listed = fault.context.get("expected") or fault.context.get("names", "")
        return suggest(value, re.findall(r"[^',\s]+", listed.replace(" or ", " ")))
    if fault.kind == "invalid_key":
        return "Put the name in quotes: `on`, `yes`, `no` and `~` mean true, false and null"
    if fault.kind == "missing":
        return _advise_missing(fault.at, raw)
    if fault.kind == "string_pattern_mismatch":
        return _advise_name(name, str(value))
    if fault.kind == "list_type" and isinstance(value, str | int):
        return f"Write [{value}]"
    if fault.kind in ("model_type", "dict_type"):
        return f"Write {{{' '.join(fields_at(raw, fault.at)[:1] or ['name'])}: ...}}"
    if fault.kind == "string_type":
        return f"Put it in quotes: '{value}'" if not isinstance(value, dict | list) else ""
    return ""


def _advise_field(name: str, at: At, raw: dict) -> str:
    """The nearest field, or the place where a field of this name belongs."""
    known, of_rule = fields_at(raw, at[:-1]), at[-3:-2] == ("rules",)
    if not of_rule and (home := home_of(name, raw, at[:-1])):
        return f"{name!r} belongs to {home}"
    if near := suggest(name, known):
        return near
    if of_rule:
        return f"What an expectation takes stands under `kwargs`: {{{name}: ...}}"
    return f"There are {', '.join(known)}" if known else ""


def _advise_missing(at: At, raw: dict) -> str:
    if at[-1] == "format":
        return "Write 'json', 'csv', 'text', 'xml', 'parquet', 'orc' or 'avro'"
    if at[-1] == "schema":
        return "`sluice infer` proposes one from a sample"
    return f"Write `{at[-1]}: ...`"


def _advise_name(field: str, value: str) -> str:
    """A name that fits the pattern of names, or an expectation's."""
    if field == "type":
        return suggest_type(value) or "Great Expectations' own names begin with expect_"
    fitting = re.sub(r"[^a-z0-9]+", "_", value.lower()).strip("_")
    meant = f"Did you mean {fitting!r}? " if re.match("[a-z]", fitting) else ""
    return f"{meant}A name is made of small letters, digits and _, a letter first"


def _write(fault: _Fault, advice: str, lines: Lines, secret: re.Pattern) -> str:
    raised = fault.context.get("error")
    own = raised.at if isinstance(raised, FieldError) else ()
    field = ".".join(map(str, fault.at)) or "pipeline"
    shown = json.dumps(fault.value, default=str)
    nested = isinstance(fault.value, dict | list)
    hidden = secret.search(f"{field} {shown if nested else ''}") or len(shown) > 120
    hidden = hidden or fault.kind == "missing" or (nested and fault.kind == "value_error")
    got = "" if hidden or own else f" (got {shown})"
    at = fault.at[:-1] if fault.kind == "missing" else fault.at
    place = lines.describe((*at, *own))
    said = f"{field}: {fault.message}{got}{f', {place}' if place else ''}."
    return f"{said} {advice}".rstrip()
