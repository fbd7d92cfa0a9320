"""What decides the fate of a row, part by part: so that a change of it can be told."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from .pipeline import Pipeline
from .step import Step

_PARTS = {"rules": "rules", "transform": "transform", "event_time": "event time", "dedup": "dedup"}
"""Fields of a step, and what people call them."""


def digest_parts(step: Step, folder: Path) -> dict[str, str]:
    """A digest of each part of a step that decides fates, by the part's name; comments on lines of
    their own and the order of YAML keys do not count.

    Args: folder: of the pipeline's YAML.
    """
    parts = {}
    for field, name in _PARTS.items():
        # Without defaults: one that a later version adds is no edit of the file.
        said = step.model_dump_json(include={field}, exclude_defaults=True)
        if field == "transform" and step.transform:
            said += read_code(folder, step.transform)
        parts[name] = _digest(said)
    if step.groups:
        parts["groups"] = _digest(repr(sorted(step.groups.items())))
    if step.inputs:
        said = step.model_dump_json(include={"inputs"}, exclude_defaults=True)
        codes = [one.transform for one in step.inputs.values() if one.transform]
        parts["inputs"] = _digest(said + "".join(read_code(folder, code) for code in codes))
    return parts


def _digest(said: str) -> str:
    return sha256(said.encode()).hexdigest()[:16]


def read_code(folder: Path, reference: str) -> str:
    """The lines of a SQL or Python file that are neither empty nor a comment; none where there is
    no such file. Args: reference: `file.sql` or `file.py:function`."""
    file = folder / reference.partition(":")[0]
    if not file.is_file():
        return ""
    mark = "--" if file.suffix == ".sql" else "#"
    lines = (line.rstrip() for line in file.read_text(encoding="utf-8").splitlines())
    return "\n".join(line for line in lines if line and not line.lstrip().startswith(mark))


def changed_parts(before: dict[str, str] | None, now: dict[str, str]) -> list[str]:
    """The parts that are others than they were; none where nobody noted what they were."""
    return [name for name in now if before is not None and before.get(name) != now[name]]


def describe_change(
    pipeline: Pipeline, step: Step, parts: Iterable[str], since: str, rows: int | None = None
) -> str:
    """A sentence on rows that were judged by what a step said before, and how to judge them anew.

    Args: since: when the last of them was written. rows: how many they are, None where nobody
    counted.
    """
    count = "the rows" if rows is None else f"{rows:,} row(s)"
    ways = []
    if step.event_time is not None and not step.followers:
        ways.append(
            f"`sluice backfill {pipeline.name} --from … --to … --write replace` for a range"
        )
    ways.append(f"`sluice reset {pipeline.name} --step {step.name} --tables` for all of them")
    return (
        f"{' and '.join(parts)} changed since {since}: {count} of the table were judged by what "
        f"the step said before, and stay as they are. To judge them anew: {', or '.join(ways)}"
    )
