"""Python that lies beside a pipeline's YAML: `file.py:name`."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

from ..errors import SpecError


def load_code(folder: Path, reference: str, where: str, noun: str = "function") -> Callable:
    """`file.py:name` -> the function or class.

    `where`, `noun`: for the error. Raises SpecError when either does not exist or cannot be loaded.
    """
    file, _, name = reference.partition(":")
    path = folder / file
    if not path.is_file():
        raise SpecError(
            "no such file",
            where=where,
            value=str(path),
            do="The path is relative to the pipeline's YAML",
        )
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    if module_spec is None or module_spec.loader is None:
        raise SpecError(
            "not a Python file", where=where, value=str(path), do=f"Write `file.py:{noun}`"
        )
    try:
        module = importlib.util.module_from_spec(module_spec)
        module_spec.loader.exec_module(module)
        return getattr(module, name)
    except Exception as error:  # the user's module may raise anything
        raise SpecError(
            f"cannot load the {noun}: {error}", where=where, do=f"Write `file.py:{noun}`"
        ) from error
