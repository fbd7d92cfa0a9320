"""YAML -> Pipeline, with errors that say file, field, value and what to write."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ..errors import SluiceError, SpecError, suggest
from .pipeline import Pipeline
from .step import Step

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

_SECRET = re.compile(r"password|secret|token|jaas|credential|access.?key", re.IGNORECASE)
_SPARK_SECRET = re.compile(r"(account|private|shared|api|encryption).?key|\bsas\b", re.IGNORECASE)
"""More names that Spark's settings have for secrets."""
_EMBEDDED = re.compile(r"(password|secret|token|access.?key)=(?!\$\{)[^\s&;]", re.IGNORECASE)
"""A secret within a value: an option of the JVM, a part of a URL."""
_FROM_ENVIRONMENT = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeyLoader(_Loader):
    """YAML in which a key written twice is an error instead of the last one winning; read by
    libyaml where it is there, six times as fast."""


def _construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict:
    seen: dict = {}
    for key_node, _ in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="unhashable key", problem_mark=key_node.start_mark)
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"key {key!r} is written twice (first on line {seen[key]})",
                problem_mark=key_node.start_mark,
            )
        seen[key] = key_node.start_mark.line + 1
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


class _Unset(SpecError):
    """A variable that is not set; `at`: the fields that lead to it."""

    at: tuple[str | int, ...] = ()


def substitute_environment(value: Any, env: dict[str, str], where: str) -> Any:
    """Replace `${NAME}` and `${NAME:-default}` in every string.

    Raises SpecError when a name has neither value nor default.
    """
    if isinstance(value, dict):
        return {k: _within(k, v, env, f"{where}: {k}") for k, v in value.items()}
    if isinstance(value, list):
        return [_within(i, v, env, f"{where}[{i}]") for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match) -> str:
        found = env.get(match[1]) or match[2]
        if found is None:
            raise _Unset(
                f"environment variable {match[1]} is not set",
                where=where,
                value=value,
                do=f"Export it, or write a default: ${{{match[1]}:-...}}",
            )
        return found

    return _VARIABLE.sub(replace, value)


def _within(part: str | int, value: Any, env: dict[str, str], where: str) -> Any:
    """What a field or an item holds; an error knows that it lies below."""
    try:
        return substitute_environment(value, env, where)
    except _Unset as error:
        error.at = (part, *error.at)
        raise


def refuse_written_secrets(value: object, where: str, of_spark: bool = False) -> None:
    """Raise SpecError for a secret that stands in the file: it must come from the environment,
    without a default. The error does not repeat it.

    Args: of_spark: the value is Spark's settings.
    """
    if isinstance(value, list):
        for number, item in enumerate(value):
            refuse_written_secrets(item, f"{where}[{number}]", of_spark)
    for name, item in value.items() if isinstance(value, dict) else ():
        if isinstance(item, str) and _is_secret(str(name), item, of_spark):
            raise SpecError(
                "a secret does not belong into the file",
                where=f"{where}: {name}",
                do=f"Write {name}: ${{NAME}} and export NAME, or use `connection`",
            )
        refuse_written_secrets(item, f"{where}: {name}", of_spark or name == "spark")


def _is_secret(name: str, text: str, of_spark: bool) -> bool:
    """True for a written text that its name, or a name within it, calls a secret."""
    if not text or _FROM_ENVIRONMENT.fullmatch(text):
        return False
    named = _SECRET.search(name) is not None
    return named or (of_spark and bool(_SPARK_SECRET.search(name) or _EMBEDDED.search(text)))


def load_pipeline(path: str | Path, env: dict[str, str] | None = None) -> Pipeline:
    """Read one pipeline file.

    Raises SpecError with file, field, value, line and what to write instead.
    """
    path = Path(path)
    text, raw = _read(path)
    refuse_written_secrets(raw, str(path))
    try:
        raw = substitute_environment(raw, dict(os.environ) if env is None else env, str(path))
        pipeline = Pipeline.model_validate({**raw, "folder": path.parent.resolve()})
    except _Unset as error:
        from .lines import Lines

        raise SpecError(
            error.what,
            where=error.where,
            value=error.value,
            do=error.do,
            place=Lines(text).describe(error.at),
        ) from None
    except ValidationError as error:
        from .explain import explain
        from .lines import Lines

        raise SpecError(explain(error, raw, Lines(text), _SECRET), where=str(path)) from None
    for number, step in enumerate(pipeline.steps):
        for code in step.transforms:
            if not (pipeline.folder / code.partition(":")[0]).is_file():
                raise _no_transform(path, text, pipeline, number, code)
    return pipeline


def _read(path: Path) -> tuple[str, dict]:
    """The text of a file, and what it says. Raises SpecError for what is no mapping."""
    text = ""
    try:
        text = path.read_text(encoding="utf-8")
        raw = yaml.load(text, Loader=_UniqueKeyLoader)  # noqa: S506 (a SafeLoader)
    except FileNotFoundError:
        raise SpecError(
            "no such pipeline file",
            where=str(path),
            do="`sluice list` shows the pipelines there are",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        from .syntax import explain_syntax

        raise explain_syntax(error, text, str(path)) from None
    if not isinstance(raw, dict):
        kind = "a list" if isinstance(raw, list) else "a single value"
        got = "the file is empty" if raw is None else f"this file is {kind}"
        raise SpecError(
            f"a pipeline is a mapping that starts with `name:`, and {got}",
            where=str(path),
            place="" if raw is None else "line 1",
            do="`sluice new NAME` writes one to start from",
        )
    return text, raw


def _no_transform(path: Path, text: str, pipeline: Pipeline, number: int, code: str) -> SpecError:
    """The error of a step whose transform's file is not there, with the nearest there is."""
    from .lines import Lines

    step = pipeline.steps[number]
    file = pipeline.folder / code.partition(":")[0]
    beside = [p.name for p in file.parent.glob(f"*{file.suffix}")] if file.parent.is_dir() else []
    return SpecError(
        "no such file",
        where=f"{path}: {pipeline.name}.{step.name}: transform {code}",
        value=str(file),
        place=Lines(text).describe(("steps", number, *_place_of(step, code))),
        do=f"{suggest(file.name, beside)}The path is relative to the pipeline's YAML",
    )


def _place_of(step: Step, code: str) -> tuple[str, ...]:
    """The fields of a step that name a transform."""
    named = (name for name, one in step.inputs.items() if one.transform == code)
    within = next(named, None) if step.transform != code else None
    return ("transform",) if within is None else ("inputs", within, "transform")


def find_pipelines(folder: str | Path) -> list[Path]:
    """Every pipeline file of a folder, by name."""
    return sorted(
        p
        for p in Path(folder).glob("*.y*ml")
        if p.suffix in (".yaml", ".yml") and not p.name.startswith((".", "_"))
    )


def load_neighbours(pipeline: Pipeline, mention: Iterable[str] = ("",)) -> Iterator[Pipeline]:
    """The other pipelines of a pipeline's folder; those that cannot be loaded are passed over.

    Args: mention: only files in which one of these stands; most need not be read as YAML then.
    """
    wanted = tuple(mention)
    for file in find_pipelines(pipeline.folder):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
            if not any(one in text for one in wanted):
                continue
            other = load_pipeline(file)
        except (OSError, SluiceError):  # it runs nothing
            continue
        if other.name != pipeline.name:
            yield other
