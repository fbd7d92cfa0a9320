"""Which fields there are at a place of a pipeline file, and where a field belongs."""

from collections.abc import Iterable
from typing import Any, get_args

from .kinds import Kinds
from .lines import At
from .model import Spec
from .pipeline import Pipeline

_HOMES = {
    "the pipeline": (),
    "the step": ("steps", 0),
    "`source`": ("steps", 0, "source"),
    "`event_time`": ("steps", 0, "event_time"),
    "`dedup`": ("steps", 0, "dedup"),
    "`sink`": ("steps", 0, "sink"),
}


def fields_at(raw: object, at: At) -> list[str]:
    """The fields that may be written at a place, as files write them; empty for a free mapping.

    Args: raw: the file, whose `kind:` tell which source or sink is meant.
    """
    annotations: list[Any] = [Pipeline]
    value: Any = raw
    for part in at:
        if isinstance(part, str):
            models = _find_models(annotations, value)
            named = [f for model in models for f in _fields_of(model, part)]
            annotations = [a for field in named for a in (field.annotation, *field.metadata)]
        value = _look_up(value, part)
    return list(dict.fromkeys(n for m in _find_models(annotations, value) for n in _names_of(m)))


def home_of(name: str, raw: object, at: At) -> str:
    """Where a field belongs that is not one of its place: `the step`; empty where none has it."""
    step = at[:2] if at[:1] == ("steps",) and len(at) > 1 else ("steps", 0)
    for home, path in _HOMES.items():
        there = (*step, *path[2:]) if path else ()
        if there != at and name in fields_at(raw, there):
            return home
    return ""


def _find_models(annotations: Iterable[Any], value: object) -> list[type[Spec]]:
    """The models among some annotations; of a registry, the one that a value is of."""
    flat = [part for annotation in annotations for part in _flatten(annotation)]
    registries = [part for part in flat if isinstance(part, Kinds)]
    if registries:
        found = [model for kinds in registries if (model := kinds.find(value)) is not None]
        return found or [model for kinds in registries if (model := kinds.find({})) is not None]
    return [part for part in flat if isinstance(part, type) and issubclass(part, Spec)]


def _flatten(annotation: Any) -> list[Any]:
    """`list[A | B]` -> what it is made of, A and B among them."""
    return [annotation, *(part for arg in get_args(annotation) for part in _flatten(arg))]


def _fields_of(model: type[Spec], name: str) -> list[Any]:
    return [f for key, f in model.model_fields.items() if name in (key, f.alias)]


def _names_of(model: type[Spec]) -> list[str]:
    return [f.alias or key for key, f in model.model_fields.items() if not f.exclude]


def _look_up(value: Any, part: str | int) -> Any:
    try:
        return value[part]
    except (KeyError, IndexError, TypeError):
        return None
