"""What every part of a pipeline file shares: frozen, and closed to fields nobody reads."""

from typing import Annotated, Union, get_args

from pydantic import BaseModel, ConfigDict, Discriminator, Tag


class Spec(BaseModel):
    """A frozen piece of a pipeline; an unknown field is an error, not a silent no-op."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True
    )


def kinds_of(model: type[Spec]) -> tuple[str, ...]:
    """The values `kind:` may have for a model."""
    return get_args(model.model_fields["kind"].annotation)


def by_kind(default: str, *models: type[Spec]) -> object:
    """The type "one of these models", told apart by `kind:`; without it, the default."""

    def find_kind(value: object) -> str | None:
        kind = (
            value.get("kind", default) if isinstance(value, dict) else getattr(value, "kind", None)
        )
        return kind if isinstance(kind, str) else None

    tagged = [Annotated[model, Tag(kind)] for model in models for kind in kinds_of(model)]
    names = ", ".join(kind for model in models for kind in kinds_of(model))
    chosen = Discriminator(
        find_kind,
        custom_error_type="unknown_kind",
        custom_error_message=f"no such kind; write one of: {names}",
    )
    return Annotated[Union[tuple(tagged)], chosen]  # noqa: UP007 (the members are not known here)
