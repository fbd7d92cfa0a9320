"""What of a step can be checked as soon as its file is read: its inputs against one another, and
the columns that its fields name."""

import re
from typing import TYPE_CHECKING

from ..errors import suggest
from .columns import check_comparable, check_time, is_unwritable
from .model import FieldError
from .rules import rule_columns

if TYPE_CHECKING:
    from .step import Step

_INPUT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
"""SQL and Python both know an input by its name."""

At = tuple[str | int, ...]


def check_inputs(step: "Step") -> None:
    """Raise ValueError for a step that has no input, or inputs that do not go together."""
    if (step.source is None) == (not step.inputs):
        raise ValueError("a step reads one `source`, or several `inputs`; write one of the two")
    for one in step.streams.values():
        if why := one.source.why_only_static:
            raise ValueError(why)
    if not step.inputs:
        return
    for name in step.inputs:
        if not _INPUT_NAME.fullmatch(name):
            raise FieldError(
                "the name of an input is a letter, then letters, digits and `_`: SQL and Python "
                "know the input by it",
                *("inputs", name),
            )
    if not step.streams:
        raise ValueError(
            "every input is static, so nothing would ever be new; leave `static` out at the one "
            "whose rows are to be read once"
        )
    if step.transform is None:
        raise ValueError(
            "`inputs` need a `transform` that says how their rows go together; write a .sql file, "
            "which sees each by its name, or file.py:function"
        )
    for name, one in step.streams.items():
        if one.source.malformed_limit is not None:
            raise FieldError(
                "`max_malformed` judges the one source of a step; read this input in a step of its "
                "own, with `source: {kind: table, step: ...}` here",
                *("inputs", name, "source", "max_malformed"),
            )


def check_columns(step: "Step") -> None:
    """Without a transform the columns are known here, so what cannot work dies before Spark starts:
    raises ValueError."""
    if step.transform is not None or not step.columns:
        return
    for place, column, at in _named_columns(step):
        if column not in step.columns:
            raise FieldError(
                f"{place} names column {column!r}, which the schema does not have; it has "
                f"{', '.join(step.columns)}",
                *at,
                do=suggest(column, step.columns),
            )
    if step.event_time is not None:
        check_time(step.event_time.column, step.columns)
    for name, type_ in step.columns.items():
        _check_column(step, name, type_)


def _named_columns(step: "Step") -> list[tuple[str, str, At]]:
    """What names a column, the column, and the fields that lead to it."""
    found: list[tuple[str, list[str], At]] = []
    if step.event_time:
        found.append(("event_time.column", [step.event_time.column], ("event_time", "column")))
    if step.dedup:
        found.append(("dedup.keys", [*step.key_names], ("dedup", "keys")))
        found.append(("dedup.order_by", step.dedup.order_columns, ("dedup", "order_by")))
    for n, sink in enumerate(step.sinks):
        found += [(f"sink.{f}", names, ("sink", n, f)) for f, names in sink.layout.items()]
    for n, rule in enumerate(step.rules):
        found.append((f"rule {rule.type}", rule_columns(rule), ("rules", n, "kwargs")))
    return [(place, name, at) for place, names, at in found for name in names]


def _check_column(step: "Step", name: str, type_: str) -> None:
    """Raise ValueError for a column that the target cannot hold, or that no key can be of."""
    mapped = step.target is None or step.target.maps_columns
    if not mapped and is_unwritable(name, type_):
        raise ValueError(
            f"column {name!r} cannot be a column of a Delta table: no name there, nor one "
            "within a struct, holds a space or one of ,;{}()=; rename it in a `transform`, or "
            "give the sink `properties: {delta.columnMapping.mode: name}`"
        )
    if step.dedup is not None:
        is_key = step.dedup.keys == "*" or name in step.dedup.keys
        check_comparable(name, type_, is_key, step.remembers)
