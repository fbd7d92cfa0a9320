"""Where in a pipeline file a field stands."""

from typing import Any

import yaml

At = tuple[str | int, ...]
"""The fields that lead to a place of a file; a number counts the items of a list."""

_OTHER_KEYS = {"on": "1", "yes": "1", "true": "1", "off": "0", "no": "0", "false": "0"}
"""Names of fields that YAML takes for true and false, and how errors name them."""


class Lines:
    """The text of a file, asked for the lines of its fields."""

    def __init__(self, text: str) -> None:
        self._rows = text.splitlines()
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            self._root: Any = yaml.compose(text, Loader=loader)
        except yaml.YAMLError:
            self._root = None

    def find(self, at: At) -> tuple[At, int]:
        """The part of a path that the file has, and the line of its end.

        What the file does not write is passed over: the number of an only sink, a field left out.
        """
        node, line, found = self._root, 1, []
        for part in at:
            below = _step_into(node, part)
            if below is not None:
                node, line = below
                found.append(part)
        return tuple(found), line

    def holds_variable(self, at: At) -> bool:
        """True where the line of a place takes something from the environment, maybe a secret."""
        _, line = self.find(at)
        return "${" in "".join(self._rows[line - 1 : line])

    def describe(self, at: At) -> str:
        """`line 8, step pages`."""
        written, line = self.find(at)
        if not written:
            return ""
        inside = written[:1] == ("steps",) and len(written) > 1
        return f"line {line}{f', step {self._name_step(written[1])}' if inside else ''}"

    def _name_step(self, number: str | int) -> str:
        """The name of a step; where it has none, which of them it is."""
        written, _ = self.find(("steps", number, "name"))
        if len(written) < 3:
            return f"{int(number) + 1}"
        node = self._root
        for part in written:
            node, _ = _step_into(node, part) or (node, 0)
        return str(node.value)


def _step_into(node: Any, part: str | int) -> tuple[Any, int] | None:
    """What a field or an item holds, and the line that it starts on; None where it is not there."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if str(part) in (key.value, _OTHER_KEYS.get(key.value.lower(), key.value)):
                return value, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode) and part in range(len(node.value)):
        return node.value[part], node.value[part].start_mark.line + 1
    return None
