"""What of a step's sinks can be checked as soon as its file is read: each against `dedup`, against
the output mode of the query, and against the others."""

from typing import TYPE_CHECKING

from .sink_kind import SinkKind

if TYPE_CHECKING:
    from .step import Step


def check_target(step: "Step") -> None:
    """Raise ValueError for a target that does not fit `dedup`, which it remembers the keys of."""
    if sum(sink.is_target for sink in step.sinks) > 1:
        raise ValueError(
            "two Delta sinks; a step has one target: make the second a step of its own with "
            "`source: {kind: table, step: ...}`"
        )
    mode = step.target.mode if step.target is not None else None
    if step.dedup is None and mode == "insert_new":
        raise ValueError("sink mode insert_new needs `dedup`; add it or write `mode: append`")
    if step.dedup is not None and mode == "append":
        raise ValueError(
            "sink mode append does not deduplicate; remove `dedup` or write `mode: insert_new`"
        )
    if step.dedup is not None and mode in ("update", "complete"):
        raise ValueError(
            f"sink mode {mode} replaces groups, and `dedup` keeps the first row of a key; put "
            "`dedup` into a step before this one, and read it with `source: {kind: table, step: "
            "...}`"
        )
    if step.transform is None and mode in ("update", "complete"):
        raise ValueError(
            f"sink mode {mode} is for a transform that gathers rows into groups, and this step has "
            "none; write `transform`, or `dedup` where the rows of a key are to become one"
        )
    if step.target is None and step.remembers:
        raise ValueError(
            "`memory: table` needs a Delta sink that remembers the keys; add one, or write "
            "`memory: state`"
        )
    if step.dedup is not None and step.event_time is None:
        raise ValueError(
            "`dedup` needs `event_time`; name the column that says when a row happened"
        )


def check_sinks(step: "Step") -> None:
    """Raise ValueError for sinks that take the place of rows beside others that only add, and for
    sinks that want one query in two output modes."""
    keys = step.dedup.keys if step.dedup is not None else []
    for sink in step.sinks:
        if sink.upsert_keys and keys and not (set(keys) <= set(sink.upsert_keys)):
            raise ValueError(
                "the `keys` of an upsert must hold those of `dedup`, or two rows of a batch "
                "could want one place; add them, or write `mode: append`"
            )
    _check_output_mode(step)
    for title, sink in step.further_sinks.items():
        _check_changes(step, title, sink)


def _check_output_mode(step: "Step") -> None:
    """Raise ValueError for sinks that cannot all be given what the query makes in its mode."""
    asked = {sink.output_mode: sink.title for sink in step.sinks if sink.output_mode}
    if len(asked) > 1:
        told = " and ".join(f"{title} {mode}" for mode, title in asked.items())
        raise ValueError(
            f"a step is one query with one output mode, and its sinks ask for two ({told}); give "
            "each a step of its own"
        )
    added_to = [sink.kind for sink in step.sinks if sink.adds_rows]
    if step.output_mode == "update" and added_to:
        replacing = added_to[0] in ("delta", "jdbc")
        raise ValueError(
            "sink mode update sends a row again when it changes, and the sink "
            f"{added_to[0]} of the same step would add each to those before; "
            f"{'write `mode: update` with `keys` there, or ' if replacing else ''}give it a step "
            "of its own"
        )
    partial = [sink.title for sink in step.sinks if not sink.takes_whole]
    if step.output_mode == "complete" and partial:
        raise ValueError(
            "sink mode complete gives the whole result with each batch, and "
            f"{partial[0]} of the same step cannot put it in place of the one before; write `mode: "
            "update`, or give it a step of its own"
        )


def _check_changes(step: "Step", title: str, sink: SinkKind) -> None:
    """Raise ValueError for a sink that would end with other rows than the target. Those of a step
    with `groups` are told what went, see `check_groups`."""
    if step.groups:
        return
    if step.replaces_rows and not sink.follows_changes:
        what = "with `order_by`" if step.dedup is not None else "with `mode: update`"
        do = ", or promise `first_arrives_first: true`" if step.dedup is not None else ""
        raise ValueError(
            f"{what} a row of the target may give way to a later one, and {title} "
            "keeps both; write a sink that replaces rows (jdbc with `mode: upsert`, kafka with "
            f"a `key`){do}"
        )
    order = [name for name, _ in sink.order]
    if step.output_mode != "append" and order:
        raise ValueError(
            f"{title} has an `order_by`, and groups need none: the newest batch says what a group "
            "is; leave it out"
        )
    if sink.upsert_keys and not order and step.output_mode == "append":
        raise ValueError(
            f"nothing tells which row of a key {title} is to keep; write `order_by` at the "
            "sink (`[updated_at desc]`), or `event_time`"
        )
    for name in order:
        if sink.written and name not in sink.written:
            raise ValueError(
                f"{title} compares rows by column {name!r} and does not write it; add it to "
                "`columns`, or write another `order_by` at the sink"
            )
