"""The state variables of a `transformWithState` from run to run: which changes leave what they hold
as it was meant.

Spark takes up a variable by its name, and its fields by theirs (the state is written as Avro). One
that is not declared any more stays in the store without a word, and a field under another name is
a new one, whose old content is gone.
"""

from collections.abc import Iterator
from typing import Any

from pyspark.sql.types import StructType

from ..checkpoint import Checkpoint, Manifest
from ..errors import PreflightError
from ..spark.custom_state import Variable
from .plan import Plan
from .run import Run

_WIDER = {("int", "bigint"), ("float", "double")}
_INITIAL = "initial state"
_BACK = "Write it as it was"
_FORGOTTEN = (
    "Where it shall go, write `handle.deleteIfExists({name!r})` in `init` until a run has come "
    "through; a variable that is only left out stays in the store for ever"
)


def follow_variables(run: Run, plan: Plan, manifest: Manifest) -> dict[str, dict[str, Any]]:
    """What is to be noted of a query's state variables, by name. Raises PreflightError for a change
    that would lose, or mistake, what they hold."""
    declared, newest = plan.declared, Checkpoint.below(plan.place.checkpoint).newest_commit
    now = {each.name: _note(each, declared.encoding) for each in declared.variables}
    initial = {_INITIAL: {"content": declared.initial}} if declared.initial else {}
    if newest is None and plan.open_batch is None:
        return now | initial  # nothing is held yet
    noted, batch = dict(manifest.variables or {}), -1 if newest is None else newest
    before = noted.pop(_INITIAL, None)
    if initial and before != initial[_INITIAL]:
        why = "is read by the first batch of a stream, and this one has begun: it would be ignored"
        raise _refuse(run, plan, _INITIAL, why, (before, initial[_INITIAL]), "Leave it out")
    kept = {}
    for name, held in noted.items():
        deleted = held.get("deleted")
        if deleted is not None and batch > deleted:
            continue
        if name in now:
            faults = _find_changes(held, now[name])
        elif name in declared.deleted:
            # Spark deletes it with the next batch: until then it has to be asked for.
            kept[name] = {**held, "deleted": batch if deleted is None else deleted}
            continue
        else:
            faults = iter([_FORGOTTEN.format(name=name)])
        for do in faults:
            why = "holds what its declaration does not say any more"
            raise _refuse(run, plan, f"state variable {name}", why, (held, now.get(name)), do)
    return now | kept | initial


def _refuse(
    run: Run, plan: Plan, what: str, why: str, notes: tuple[dict | None, dict | None], do: str
) -> PreflightError:
    """The refusal of a change. Args: notes: before and now; None for nothing."""
    before, now = ("nothing" if note is None else note["content"] for note in notes)
    return PreflightError(
        f"{what} {why}",
        where=f"{plan.where}: transform {plan.step.transform}",
        value=f"before: {before}; now: {now}",
        do=f"{do}. Or begin anew: `sluice reset {run.pipeline.name} --step {plan.step.name} "
        "--tables` reads everything again",
    )


def _note(variable: Variable, encoding: str) -> dict[str, Any]:
    types = [each.jsonValue() for each in variable.types]
    return {
        "kind": variable.kind,
        "content": variable.content,
        "types": types,
        "encoding": encoding,
    }


def _types(note: dict[str, Any]) -> list[StructType]:
    return [StructType.fromJson(each) for each in note["types"]]


def _find_changes(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """What to write instead of each change of a variable that is not allowed."""
    if before["kind"] != now["kind"]:
        yield f"{_BACK}, and declare the other under a new name"
        return
    if before["encoding"] != "avro" and before["types"] != now["types"]:
        yield (
            f"{_BACK}: beside another operator with state (an aggregation, a join, `dedup`) the "
            "fields of a variable are known by their places alone"
        )
        return
    (*old_keys, old), (*new_keys, new) = map(_types, (before, now))
    if old_keys != new_keys:
        yield f"{_BACK}: the key of a map is what it is found by"
    had = {field.name: field.dataType.simpleString() for field in old.fields}
    has = {field.name: field.dataType.simpleString() for field in new.fields}
    for name in had.keys() & has.keys():
        if had[name] != has[name] and (had[name], has[name]) not in _WIDER:
            yield f"{_BACK}: {name} may become wider (int to bigint, float to double), no other"
    if had.keys() - has.keys() and has.keys() - had.keys():
        yield (
            f"{_BACK}: a new name would begin without its old content. Where fields shall go and "
            "others come, let a run come through between the two"
        )
