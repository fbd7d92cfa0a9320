"""Gives a pipeline or a step another name in the text of its file: what they were known by stays as
`uid`, so nothing that was written moves."""

from dataclasses import dataclass
from typing import Any

import yaml

from ..errors import SpecError, suggest

_BY_HAND = "Write the new name there, and the old one as `uid`, by hand"


@dataclass(frozen=True)
class _Edit:
    """What takes the place of a part of the text."""

    start: int
    end: int
    text: str


def rename_in_text(text: str, new: str, step: str | None = None) -> str:
    """The text of a pipeline's file with another name of the pipeline, or of a step and where its
    other steps read it; comments and the order of fields stay.

    Raises SpecError for a step that is not there, and for names that the text does not spell out.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if step is None:
        edits = _rename_node(text, root, new)
    else:
        steps = _entry(root, "steps").value
        named = {_spell(_entry(node, "name")): node for node in steps}
        if step not in named:
            raise SpecError(
                "no step has this name",
                where="--step",
                value=step,
                do=f"{suggest(step, named)}The file has {', '.join(named)}",
            )
        edits = _rename_node(text, named[step], new)
        for node in steps:
            reads = _entry(_entry(node, "source"), "step")
            if reads is not None and _spell(reads) == step:
                edits.append(_replace(text, reads, new))
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _rename_node(text: str, node: Any, new: str) -> list[_Edit]:
    """The edits that give a mapping another `name`, and the old one as `uid` where it has none."""
    name = _entry(node, "name")
    edits = [_replace(text, name, new)]
    if _entry(node, "uid") is not None:
        return edits
    uid = f"uid: {_spell(name)}"
    if node.flow_style:
        return [*edits, _Edit(name.end_mark.index, name.end_mark.index, f", {uid}")]
    key = next(key for key, value in node.value if value is name)
    end = text.find("\n", name.end_mark.index)
    end = len(text) if end < 0 else end
    return [*edits, _Edit(end, end, f"\n{' ' * key.start_mark.column}{uid}")]


def _replace(text: str, node: Any, new: str) -> _Edit:
    """The edit that writes another text for a scalar. Raises SpecError for one that the file takes
    from elsewhere: the environment, or an anchor."""
    start, end = node.start_mark.index, node.end_mark.index
    written = text[start:end].strip().strip("'\"")
    if written != node.value or "$" in written:
        raise SpecError(
            "the file does not spell this name out",
            where=f"line {node.start_mark.line + 1}",
            value=written,
            do=_BY_HAND,
        )
    return _Edit(start, end, new)


def _spell(node: Any) -> str:
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _entry(node: Any, name: str) -> Any:
    """What a mapping holds under a name; None where it holds nothing."""
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if key.value == name), None)
