"""The sentences below a model's fields, where somebody asks for them.

Pydantic's `use_attribute_docstrings` reads the source of each class when it is imported: a sixth of
an idle check, for schemas that editors and tests ask for.
"""

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

from pydantic import BaseModel


def describe_fields(model: type[BaseModel]) -> dict[str, str]:
    """Field -> what the docstring below it says; those of inherited fields too."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, BaseModel) and cls is not BaseModel:
            found |= _read_docstrings(cls)
    return {name: text for name, text in found.items() if name in model.model_fields}


def _read_docstrings(cls: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(body.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def add_descriptions(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """What pydantic calls as `json_schema_extra`: each property gets its field's sentences."""
    properties = schema.get("properties", {})
    for name, text in describe_fields(model).items():
        key = model.model_fields[name].alias or name
        if key in properties:
            properties[key].setdefault("description", text)
