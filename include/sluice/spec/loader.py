"""YAML -> Pipeline, with errors that say file, field, value and what to write."""

import json
import os
import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ..errors import SpecError
from .pipeline import Pipeline

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")

_SECRET = re.compile(r"password|secret|token|jaas|credential|access.?key", re.IGNORECASE)
_SPARK_SECRET = re.compile(r"(account|private|shared|api|encryption).?key|\bsas\b", re.IGNORECASE)
"""More names that Spark's settings have for secrets."""
_WITHIN = re.compile(r"(password|secret|token|access.?key)=(?!\$\{)[^\s&;]", re.IGNORECASE)
"""A secret within a value: an option of the JVM, a part of a URL."""
_FROM_ENVIRONMENT = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeyLoader(_Loader):
    """YAML in which a key written twice is an error instead of the last one winning; read by
    libyaml where it is there, six times as fast."""


def _construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict:
    seen: set = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node)
        if key in seen:
            raise yaml.MarkedYAMLError(
                problem=f"key {key!r} is written twice", problem_mark=key_node.start_mark
            )
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


def substitute_environment(value: Any, env: dict[str, str], where: str) -> Any:
    """Replace `${NAME}` and `${NAME:-default}` in every string.

    Raises SpecError when a name has neither value nor default.
    """
    if isinstance(value, dict):
        return {k: substitute_environment(v, env, f"{where}: {k}") for k, v in value.items()}
    if isinstance(value, list):
        return [substitute_environment(v, env, f"{where}[{i}]") for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match) -> str:
        found = env.get(match[1]) or match[2]
        if found is None:
            raise SpecError(
                f"environment variable {match[1]} is not set",
                where=where,
                value=value,
                do=f"Export it, or write a default: ${{{match[1]}:-...}}",
            )
        return found

    return _VARIABLE.sub(replace, value)


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
    return named or (of_spark and bool(_SPARK_SECRET.search(name) or _WITHIN.search(text)))


def load_pipeline(path: str | Path, env: dict[str, str] | None = None) -> Pipeline:
    """Read one pipeline file.

    Raises SpecError with file, field, value and what to write instead.
    """
    path = Path(path)
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)  # noqa: S506 (a SafeLoader)
    except FileNotFoundError:
        raise SpecError(
            "no such pipeline file",
            where=str(path),
            do="`sluice list` shows the pipelines there are",
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise SpecError(
            f"not readable as YAML: {' '.join(str(error).split())}",
            where=str(path),
            do="Mend the line it names",
        ) from None
    if not isinstance(raw, dict):
        raise SpecError(
            "a pipeline is a mapping that starts with `name:`",
            where=str(path),
            value=raw,
            do="`sluice new NAME` writes one to start from",
        )
    refuse_written_secrets(raw, str(path))
    raw = substitute_environment(raw, dict(os.environ) if env is None else env, str(path))
    try:
        pipeline = Pipeline.model_validate({**raw, "folder": path.parent.resolve()})
    except ValidationError as error:
        raise SpecError(
            _explain(error), where=str(path), do="`sluice schema` prints every field there is"
        ) from None
    for step in pipeline.steps:
        if step.transform and not (pipeline.folder / step.transform.partition(":")[0]).is_file():
            raise SpecError(
                "no such file",
                where=f"{path}: {pipeline.name}.{step.name}: transform {step.transform}",
                value=str(pipeline.folder / step.transform.partition(":")[0]),
                do="The path is relative to the pipeline's YAML",
            )
    return pipeline


def _explain(error: ValidationError) -> str:
    """One line per wrong field: its path, what is wrong, the value."""
    lines = []
    for item in error.errors(include_url=False):
        field = ".".join(map(str, item["loc"])) or "pipeline"
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            message = "unknown field; remove it or mend its spelling"
        shown = json.dumps(item["input"], default=str)
        secret = _SECRET.search(
            f"{field} {shown if isinstance(item['input'], dict | list) else ''}"
        )
        got = (
            f" (got {shown})"
            if item["type"] != "missing" and len(shown) <= 120 and not secret
            else ""
        )
        lines.append(f"{field}: {message}{got}")
    return "; ".join(lines)


def find_pipelines(folder: str | Path) -> list[Path]:
    """Every pipeline file of a folder, by name."""
    return sorted(
        p
        for p in Path(folder).glob("*.y*ml")
        if p.suffix in (".yaml", ".yml") and not p.name.startswith((".", "_"))
    )
