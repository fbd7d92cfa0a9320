"""An input of a step that has several: where its rows come from, and what is asked of each before
they meet those of the others."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from .dedup import EventTime
from .model import Spec
from .quantities import Duration
from .rules import ROW_LEVEL, RuleSpec
from .source import Source

ONLY = "source"
"""What the one input of a step with `source:` is called."""


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[str], BeforeValidator(_as_list, json_schema_input_type=str | list[str])]
"""One text or several."""


class Input(Spec):
    """An input of a step: a stream, each record of which is read once, or a table that is read anew
    in each run."""

    source: Source
    static: bool = False
    """A table or a topic as it is when a run begins: no rows of it are counted, refused or
    remembered."""
    key: Texts = []
    """SQL over a row of this input: how rows of the inputs under `through` know it. It need not be
    of one row alone."""
    through: dict[str, Texts] = {}
    """In a step with `groups`, of a table that has none of its own (a dimension): input that it is
    joined to -> SQL over a row of that, equal to `key`. A row belongs to the groups of those with
    its key."""
    transform: str | None = None
    """A `.sql` file or `file.py:function` that selects and filters the rows of this input."""
    event_time: EventTime | None = None
    watermark: Duration | None = None
    """How far behind the newest `event_time` of this input a row may come; what is older than that
    in every input is closed."""
    rules: list[RuleSpec] = []
    """Rules on single rows; what they quarantine never reaches the step's transform."""
    name: str = Field(default="", exclude=True, json_schema_extra={"readOnly": True})
    """Filled in by the step."""

    @property
    def dedup(self) -> None:
        """Copies are found among the rows that the step makes."""

    @property
    def key_names(self) -> tuple[str, ...]:
        """None: see `dedup`."""
        return ()

    @model_validator(mode="after")
    def _check(self) -> "Input":
        asked = ("transform", "event_time", "watermark", "rules")
        given = [name for name in asked if getattr(self, name)]
        if self.static and given:
            raise ValueError(
                f"a static input is read as it is, and {given[0]} asks something of its rows; "
                "write it in the step's transform, or leave `static` out"
            )
        if self.static and (why := self.source.why_not_static):
            raise ValueError(why)
        if self.watermark is not None and self.event_time is None:
            raise ValueError(
                "`watermark` needs `event_time`; name the column that says when a row happened"
            )
        of_table = [rule.type for rule in self.rules if rule.type not in ROW_LEVEL]
        if of_table:
            raise ValueError(
                f"rule {of_table[0]} looks at a whole table, and an input has none; write it under "
                "the step's `rules`, or a rule that looks at single rows"
            )
        return self


WatermarkPolicy = Literal["min", "max"]
