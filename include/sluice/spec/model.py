"""What every part of a pipeline file shares: frozen, and closed to fields nobody reads."""

from pydantic import BaseModel, ConfigDict


class Spec(BaseModel):
    """A frozen piece of a pipeline; an unknown field is an error, not a silent no-op."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, populate_by_name=True)
