"""How the bytes of a source become rows."""

import codecs
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from .columns import check_columns
from .source_kind import BoundedSource, MalformedLimit


def _as_limit(value: object) -> object:
    return value if value is None or isinstance(value, dict | MalformedLimit) else {"share": value}


class Records(BoundedSource):
    """What a source whose records are bytes says of them."""

    columns: dict[str, str] = Field(alias="schema")
    """Column name -> Spark type. `sluice infer` proposes it; a person commits it."""
    format: str
    encoding: str = "UTF-8"
    """Of a text: `ISO-8859-1`, `windows-1252`, `UTF-16`, …"""
    unknown_fields: Literal["rescue", "fail", "ignore"] = "rescue"
    """Fields outside the schema: keep them as JSON in `_rescued`, refuse the batch, or leave them
    out."""

    max_malformed: Annotated[
        MalformedLimit | None,
        BeforeValidator(_as_limit, json_schema_input_type=str | MalformedLimit | None),
    ] = None
    """How many of the records may be malformed, judged as a rule is: `5 %` warns of more,
    `{share: 5 %, on_fail: stop}` refuses a batch that holds more. Each of them is in quarantine
    either way."""

    @field_validator("columns")
    @classmethod
    def _check_columns(cls, columns: dict[str, str]) -> dict[str, str]:
        check_columns(columns)
        return columns

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, encoding: str) -> str:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ValueError(
                "no such encoding; write UTF-8, ISO-8859-1, windows-1252, UTF-16 or another "
                "charset by its usual name"
            ) from None
        return encoding

    @property
    def spans_lines(self) -> bool:
        """True where a record may be spread over lines."""
        return False

    @property
    def record_start(self) -> str | None:
        """What the first line of a record begins with, where that is what tells records apart."""
        return None

    @property
    def is_read_by_lines(self) -> bool:
        """True where no record holds a line break."""
        return False

    @property
    def declared(self) -> dict[str, str]:
        """The schema."""
        return self.columns

    @property
    def keeps_rescued(self) -> bool:
        """As `unknown_fields` says."""
        return self.unknown_fields == "rescue"

    @property
    def malformed_limit(self) -> MalformedLimit | None:
        """As `max_malformed` says."""
        return self.max_malformed

    @property
    def refuses_unknown(self) -> bool:
        """As `unknown_fields` says."""
        return self.unknown_fields == "fail"
