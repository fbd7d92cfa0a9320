"""What every part of a pipeline file shares: frozen, and closed to fields nobody reads."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from ..storage.buckets import in_bucket
from .docstrings import add_descriptions


def _describe(schema: dict, model: type[BaseModel]) -> None:
    """Have editors show what is said below each field, without the line breaks of the code."""
    add_descriptions(schema, model)
    for part in (schema, *schema.get("properties", {}).values()):
        if "description" in part:
            paragraphs = part["description"].split("\n\n")
            part["description"] = "\n\n".join(" ".join(p.split("\n")) for p in paragraphs)


class FieldError(ValueError):
    """Raised by a check of several fields: which one is to blame, and what to write there.

    `at`: the fields that lead to it, from the model that raises.
    """

    def __init__(self, what: str, *at: str | int, do: str = "") -> None:
        self.at, self.do = at, do
        super().__init__(what)


class Spec(BaseModel):
    """A frozen piece of a pipeline; an unknown field is an error, not a silent no-op."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        json_schema_extra=_describe,
    )


def _as_text(options: object) -> object:
    """Options as Spark takes them: every value is text, `true` and `false` in lower case."""
    if options is not None and not isinstance(options, dict):
        return options
    return {
        k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in (options or {}).items()
    }


Options = Annotated[dict[str, str], BeforeValidator(_as_text)]
"""Settings that are passed through to Spark."""


class Needs(Spec):
    """What a source or a sink needs around it before a run can use it."""

    @property
    def places(self) -> tuple[str, ...]:
        """Paths that may lie in a bucket."""
        return ()

    @property
    def jar_sets(self) -> frozenset[str]:
        """The sets of jars it needs beside `core`."""
        return frozenset({"s3"} if any(in_bucket(place) for place in self.places) else ())

    @property
    def connections(self) -> tuple[str, ...]:
        """Ids of the Airflow connections it names."""
        return ()
