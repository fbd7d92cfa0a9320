"""What is wrong with a file that is no YAML, as a person would say it."""

import re

import yaml

from ..errors import SpecError

_QUOTE = "Put the value in quotes"
_SENTENCES = (
    (r"while scanning a quoted scalar", "a quote that is opened here is never closed", "Close it"),
    (
        r"while parsing a flow (sequence|mapping)",
        "a bracket (`[` or `{`) that is opened here is never closed, or lacks a comma",
        "Close it, or write the comma",
    ),
    (
        r"while scanning an (alias|anchor)",
        "a value that begins with `*` or `&` means something else in YAML",
        f"{_QUOTE}: '*/30 * * * *'",
    ),
    (
        r"mapping values are not allowed",
        "a colon where none can be: the line above lacks its colon or a closing sign, the line is "
        "indented too far, or a value holds `: `",
        "Mend the indentation, or put the value in quotes: '...'",
    ),
    (
        r"could not find expected ':'",
        "neither `field: value` nor a part of the lines above",
        "Write the colon behind the field's name",
    ),
    (
        r"did not find expected (key|'-' indicator)|expected <block end>",
        "this line is indented otherwise than the lines it belongs to",
        "Begin it below the first letter of its neighbours",
    ),
    (r"2002:merge", "`<<` is not read here", "Write the fields themselves"),
    (
        r"unhashable|\{\{",
        "`{{` is a mapping in YAML, not a placeholder",
        "Write ${NAME} for an environment variable, or put the value in quotes",
    ),
)
"""What the parser says -> what is meant, and what to do."""


def explain_syntax(error: Exception, text: str, where: str) -> SpecError:
    """The error of a YAML parser with the line that is to be mended."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return SpecError(
            f"not readable as YAML: {' '.join(str(error).split())}",
            where=where,
            do="Save the file as UTF-8 text",
        )
    said = f"{error.context or ''} {error.problem or ''}".strip()
    opened = error.context_mark if re.search("quoted|flow", said) else None
    mark = opened or error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    what, do = _describe(said, _sign_at(error, text))
    return SpecError(f"not readable as YAML: {what}", where=where, do=do, place=place)


def _sign_at(error: yaml.MarkedYAMLError, text: str) -> str:
    """The character that the parser stopped at."""
    rows, mark = text.splitlines(), error.problem_mark
    if mark is None or mark.line >= len(rows):
        return ""
    indentation = re.match(r"\s*", rows[mark.line])
    if indentation and "\t" in indentation[0]:
        return "\t"
    return rows[mark.line][mark.column : mark.column + 1]


def _describe(said: str, sign: str) -> tuple[str, str]:
    if "is written twice" in said:
        return said, "Keep one of the two"
    if sign == "\t":
        return "a tab in the indentation", "Indent with spaces"
    if "cannot start any token" in said:
        return f"no value begins with {sign!r}", f"{_QUOTE}: '{sign}...'"
    for pattern, what, do in _SENTENCES:
        if re.search(pattern, said):
            return what, do
    return said, "Mend the line"
