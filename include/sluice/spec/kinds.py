"""The kinds of sources and of sinks there are: a registry each, which a pipeline file is read
by."""

from typing import get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from .model import Spec


class Kinds:
    """Models told apart by `kind:`. A field annotated with it takes any model that was added."""

    def __init__(self, default: str, *models: type[Spec]) -> None:
        self._default = default
        self._models: dict[str, type[Spec]] = {}
        for model in models:
            self.add(model)

    def add(self, model: type[Spec]) -> None:
        """Let files name a model by the values that its field `kind` may have."""
        for kind in get_args(model.model_fields["kind"].annotation):
            self._models[kind] = model

    def find(self, value: object) -> type[Spec] | None:
        """The model of a mapping's kind; None where there is no such kind."""
        kind = value.get("kind", self._default) if isinstance(value, dict) else None
        return self._models.get(kind) if isinstance(kind, str) else None

    def read(self, value: object) -> Spec:
        """A mapping as the model of its kind; a model as it is."""
        if isinstance(value, Spec):
            return value
        model = self.find(value)
        if model is None:
            raise PydanticCustomError(
                "unknown_kind",
                "no such kind; write one of: {names}",
                {"names": ", ".join(self._models)},
            )
        return model.model_validate(value)

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.read)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        models = dict.fromkeys(self._models.values())
        return handler(
            core_schema.union_schema([model.__pydantic_core_schema__ for model in models])
        )
