"""How the bytes of a source become rows."""

import codecs
import re
from typing import Literal

from pydantic import Field, field_validator

from .model import Spec

_TYPE = re.compile(
    r"(string|binary|boolean|byte|tinyint|short|smallint|int|integer|long|bigint|float|double|date|timestamp|timestamp_ntz|variant"
    r"|decimal\(\s*\d+\s*,\s*\d+\s*\)|array<.+>|map<.+>|struct<.+>)",
    re.IGNORECASE,
)


def as_text(options: dict) -> dict[str, str]:
    """Options as Spark takes them: every value is text, `true` and `false` in lower case."""
    return {
        k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in (options or {}).items()
    }


class Records(Spec):
    """What a source whose records are bytes says of them."""

    columns: dict[str, str] = Field(alias="schema")
    """Column name -> Spark type. `sluice infer` proposes it; a person commits it."""
    encoding: str = "UTF-8"
    unknown_fields: Literal["rescue", "fail", "ignore"] = "rescue"
    """Fields outside the schema: keep them as JSON in `_rescued`, refuse the batch, or leave them out."""
    options: dict[str, str] = {}
    """Spark's own reader options, passed through as written."""

    @field_validator("columns")
    @classmethod
    def _check_columns(cls, columns: dict[str, str]) -> dict[str, str]:
        if not columns:
            raise ValueError("no columns; `sluice infer` proposes a schema from a sample")
        for name, type_ in columns.items():
            if name.startswith("_"):
                raise ValueError(
                    f"column {name!r}: names that start with `_` are kept for system columns; rename it"
                )
            if not _TYPE.fullmatch(type_.strip()):
                raise ValueError(
                    f"column {name!r} has unknown type {type_!r}; write a Spark SQL type such as string, bigint, double, timestamp"
                )
        lowered = [name.lower() for name in columns]
        if len(set(lowered)) < len(lowered):
            raise ValueError("two columns differ only in case; Spark does not tell them apart")
        return columns

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, encoding: str) -> str:
        try:
            codecs.lookup(encoding)
        except LookupError:
            raise ValueError(
                "no such encoding; write UTF-8, ISO-8859-1, windows-1252, UTF-16 or another charset by its usual name"
            ) from None
        return encoding

    @field_validator("options", mode="before")
    @classmethod
    def _stringify(cls, options: dict) -> dict:
        return as_text(options)
