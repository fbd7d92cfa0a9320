"""Refresh by group: which group a row of the result belongs to, and what a step that is refreshed
so may ask for."""

from typing import TYPE_CHECKING

from .columns import GROUP_PREFIX
from .delta_sink import CHANGE_FEED
from .model import FieldError
from .table_source import TableSource
from .trigger import AVAILABLE_NOW

if TYPE_CHECKING:
    from .step import Step

Groups = dict[str, str | dict[str, str]]
"""Column of the result -> SQL over a row of an input, the same for all of them or by input."""
Expressions = dict[str, dict[str, str]]
"""Column of the result -> input -> SQL over a row of it."""

_OF_READER = {
    "start": "earliest",
    "change_feed": False,
    "skip_change_commits": False,
    "event_time_order": False,
    "schema_tracking": False,
    "max_files_per_batch": None,
    "max_bytes_per_batch": None,
}
"""Fields of a table source that read a part of it, and what they are unless written."""


def grouped_inputs(step: "Step") -> list[str]:
    """The inputs whose rows say themselves to which groups they belong."""
    return [name for name, one in step.streams.items() if not one.through]


def group_expressions(step: "Step") -> Expressions:
    """How each group follows from a row of each input that says it."""
    names = grouped_inputs(step)
    return {
        column: said if isinstance(said, dict) else dict.fromkeys(names, said)
        for column, said in step.groups.items()
    }


def check_groups(step: "Step") -> None:
    """Raise ValueError for a step with `groups` that asks for what a refresh cannot give, and for
    one without that says how groups are refreshed."""
    if not step.groups:
        for name in ("refresh", "on_lost_history"):
            if name in step.model_fields_set:
                raise FieldError(f"`{name}` says nothing of a step without `groups`", name)
    _check_through(step)
    if not step.groups:
        return
    _check_inputs(step)
    _check_expressions(step)
    asked = {
        "dedup": (step.dedup, "copies are what the query makes of them: `SELECT DISTINCT`"),
        "event_time": (step.event_time, "write what it should refuse as a rule, or a WHERE"),
        "state_store": (step.state_store, "nothing is kept in state"),
    }
    for name, (given, instead) in asked.items():
        if given is not None:
            raise FieldError(
                f"a step with `groups` holds what its query makes of its inputs, and takes no "
                f"`{name}`: {instead}",
                name,
            )
    if step.transform is None:
        raise FieldError("`groups` need a `transform`: the query that makes them", "groups")
    if step.trigger != AVAILABLE_NOW:
        raise FieldError(
            "a step with `groups` is refreshed once a run; leave `trigger` out", "trigger"
        )
    _check_sinks(step)


def _check_inputs(step: "Step") -> None:
    for name, one in (*step.streams.items(), *step.statics.items()):
        at = ("inputs", name) if step.inputs else ()
        source = one.source
        if not isinstance(source, TableSource):
            raise FieldError(
                f"`groups` are refreshed from Delta tables, which can be asked again, and this "
                f"source is {source.kind}; write it to a table in a step before this one, or "
                "leave `groups` out",
                *(*at, "source", "kind"),
            )
        if source.name is not None:
            raise FieldError(
                "a step with `groups` reads its inputs at a version of theirs, by the log in their "
                "folder; write `path` in place of `name`",
                *(*at, "source", "name"),
            )
        for field, default in _OF_READER.items():
            if getattr(source, field) != default:
                raise FieldError(
                    "a step with `groups` reads its inputs as whole tables, and finds by itself "
                    f"what changed in them; leave `{field}` out",
                    *(*at, "source", field),
                )
        for field in ("transform", "event_time", "watermark", "rules"):
            if getattr(one, field):
                raise FieldError(
                    f"a step with `groups` reads its inputs as they are; write `{field}` in the "
                    "step that makes the table, or in the query",
                    *(*at, field),
                )


def _check_through(step: "Step") -> None:
    names = grouped_inputs(step)
    for name, one in step.inputs.items():
        for field in ("key", "through") if not step.groups or one.static else ():
            if getattr(one, field):
                of = "a static input" if one.static else "an input of a step without `groups`"
                raise FieldError(f"`{field}` says nothing of {of}", "inputs", name, field)
        if bool(one.key) != bool(one.through):
            field, other = ("key", "through") if one.key else ("through", "key")
            raise FieldError(
                f"`{field}` needs `{other}`: a row of {name} belongs to the groups of rows that "
                "are joined to it by its key (`key: id`, `through: {orders: product}`)",
                *("inputs", name, field),
            )
        for other, texts in one.through.items():
            if other not in names:
                raise FieldError(
                    f"{other!r} is no input whose rows say their groups; there are "
                    f"{', '.join(names) or 'none'}",
                    *("inputs", name, "through", other),
                )
            if len(texts) != len(one.key):
                raise FieldError(
                    f"the key of {name} has {len(one.key)} parts and this {len(texts)}; write what "
                    "each part is equal to, in the same order",
                    *("inputs", name, "through", other),
                )


def _check_expressions(step: "Step") -> None:
    names = grouped_inputs(step)
    if not names:
        raise FieldError(
            "every input belongs to groups through others; leave `through` out where a row says "
            "its groups",
            "inputs",
        )
    for column, said in step.groups.items():
        if column.startswith("_") and not column.startswith(GROUP_PREFIX):
            raise FieldError(
                "names that start with `_` are kept; a group that the query does not select is "
                f"called `{GROUP_PREFIX}` and a name",
                *("groups", column),
            )
        if not isinstance(said, dict):
            continue
        for name in said:
            if name not in names:
                raise FieldError(
                    f"{name!r} is no input whose rows say their groups; there are "
                    f"{', '.join(names)}",
                    *("groups", column, name),
                )
        missing = [name for name in names if name not in said]
        if missing:
            raise FieldError(
                f"nothing says how {column} follows from a row of {missing[0]}; write it, or at an "
                "input that has no group by which `key` it is joined `through` which input, or "
                "`static: true` (a change of it has all computed)",
                *("groups", column),
            )


def _check_sinks(step: "Step") -> None:
    target = step.target
    if target is None:
        raise FieldError(
            "`groups` are compared with what a Delta table holds; add `{kind: delta}`", "sink"
        )
    if target.mode not in (None, "append"):
        raise FieldError(
            f"groups are replaced as wholes, so `mode: {target.mode}` says nothing; leave it out",
            *("sink", step.sinks.index(target), "mode"),
        )
    for number, sink in enumerate(step.sinks):
        if sink is target:
            continue
        if sink.mirrored_by is None:
            raise FieldError(
                f"groups change and go, and {sink.title} could not be told what went; write jdbc "
                "with `mode: upsert` and `keys`, kafka with a `key`, or files; or read the table "
                "in a step of its own, with `change_feed: true`, and send that",
                *("sink", number),
            )
        if sink.order:
            raise FieldError(
                f"{sink.title} becomes what the table is, and no row of a key waits for another; "
                "leave `order_by` out",
                *("sink", number, "order_by"),
            )
    if step.further_sinks and not step.keeps_changes:
        raise FieldError(
            "the further sinks of a step with `groups` are told by the table's change feed what "
            f"went; leave `{CHANGE_FEED}` out",
            *("sink", step.sinks.index(target), "properties"),
        )
