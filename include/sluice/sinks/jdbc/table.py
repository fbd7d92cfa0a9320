"""The table of a JDBC sink: its name, its columns against those of the rows, and the statements
that fill it."""

import json
import re
from dataclasses import dataclass

from pyspark.sql.types import DataType, StructField, StructType

from ...errors import SinkError, SpecError
from ...spec import JdbcSink
from .postgres import Answers, Database
from .types import holds, usual_type

_LONGEST = 63
"""Bytes of a name; PostgreSQL cuts longer ones, and two could become one."""
_DESCRIBE = """
SELECT json_build_object('name', format('%I.%I', n.nspname, c.relname), 'kind', c.relkind,
  'declared', (SELECT json_object_agg(key, format_type(to_regtype(value), -1))
    FROM json_each_text(?::json)),
  'columns', (SELECT json_object_agg(a.attname, json_build_object(
      'type', format_type(a.atttypid, a.atttypmod), 'base', format_type(a.atttypid, -1),
      'text', t.typcategory = 'S',
      'required', a.attnotnull AND NOT a.atthasdef AND a.attidentity = '') ORDER BY a.attnum)
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(?)"""


@dataclass(frozen=True)
class Written:
    """A column on its way into the table. `type`: as the table has it; `base`: without length or
    precision; `is_text`: read without a cast."""

    name: str
    kind: DataType
    type: str
    base: str
    is_text: bool

    @property
    def quoted_type(self) -> str:
        """The type within a text of SQL."""
        return self.type.replace("'", "''")


@dataclass(frozen=True)
class Table:
    """A table as the database describes it. `name`: with its schema, quoted."""

    name: str
    kind: str
    columns: dict[str, dict]
    declared: dict[str, str | None]
    """Column -> the type that `types` names, as PostgreSQL spells it; None for one it does not
    know."""


def quote_name(*parts: str) -> str:
    """A name safe in SQL, exactly as written. Raises SpecError for one PostgreSQL would cut."""
    for part in parts:
        if len(part.encode()) > _LONGEST:
            raise SpecError(
                f"a name in PostgreSQL has at most {_LONGEST} bytes",
                where=part,
                value=len(part.encode()),
                do="Rename it in the transform, or in the sink",
            )
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def split_name(table: str, field: str) -> list[str]:
    """`sales.orders` -> its parts; a part in double quotes may hold dots.

    Raises SpecError for a name that has other than one or two.
    """
    parts = re.findall(r'"(?:[^"]|"")+"|[^".]+', table)
    if len(parts) not in (1, 2) or ".".join(parts) != table:
        raise SpecError(
            "the name of a table cannot be read",
            where=f"sink.{field}",
            value=table,
            do='Write name or schema.name; a part with a dot in "double quotes"',
        )
    return [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in parts]


def choose_fields(sink: JdbcSink, schema: StructType, columns: list[str]) -> list[StructField]:
    """The fields of the rows that are written.

    Args: columns: the user's own. Raises SpecError for a name that is not there, or a type that has
    no place.
    """
    chosen = sink.columns or columns
    for field, names, there in (
        ("columns", chosen, schema.names),
        ("keys", sink.keys, chosen),
        ("order_by", [name for name, _ in sink.order], chosen),
        ("types", sink.types, chosen),
    ):
        for name in names:
            if name not in there:
                raise SpecError(
                    f"no column {name!r} among those that are written",
                    where=f"sink.{field}",
                    do=f"There are: {', '.join(there)}",
                )
    for name in chosen:
        kind = schema[name].dataType
        if usual_type(kind) is None:
            raise SpecError(
                "no type of PostgreSQL holds this one",
                where=f"column {name!r}",
                value=kind.simpleString(),
                do="Cast it in the transform, or leave it out of `columns`",
            )
    return [schema[name] for name in chosen]


def describe_table(database: Answers, sink: JdbcSink) -> Table | None:
    """The sink's table; None when there is none."""
    found = database.ask(
        _DESCRIBE, json.dumps(sink.types), quote_name(*split_name(sink.table, "table"))
    )
    return (
        Table(**{**found, "columns": found["columns"] or {}, "declared": found["declared"] or {}})
        if found
        else None
    )


def create_table(database: Database, sink: JdbcSink, fields: list[StructField]) -> None:
    """Create the sink's table; the keys of an upsert become its primary key."""
    columns = [
        f"{quote_name(f.name)} {sink.types.get(f.name) or usual_type(f.dataType)}" for f in fields
    ]
    columns += [f"PRIMARY KEY ({', '.join(map(quote_name, sink.keys))})"] if sink.keys else []
    database.run(
        "CREATE TABLE {table} ({columns})",
        table=quote_name(*split_name(sink.table, "table")),
        columns=", ".join(columns),
    )


def match_columns(sink: JdbcSink, fields: list[StructField], table: Table) -> list[Written]:
    """The columns as the table takes them.

    Raises SinkError for a column the table lacks, has in a type that would change values, or cannot
    do without.
    """
    where = f"table {sink.table}"
    if table.kind not in ("r", "p"):
        raise SinkError(
            "it is not a table",
            where=where,
            do="Name a table: a view or a foreign table takes no batch in one transaction",
        )
    missing = [f for f in fields if f.name not in table.columns]
    if missing:
        new = ", ".join(
            f"ADD COLUMN {quote_name(f.name)} {sink.types.get(f.name) or usual_type(f.dataType)}"
            for f in missing
        )
        raise SinkError(
            f"the table has no column {', '.join(repr(f.name) for f in missing)} (names are "
            "compared exactly)",
            where=where,
            do=f"Run ALTER TABLE {table.name} {new}; or list under `columns` what the table has",
        )
    names = {f.name for f in fields}
    needed = [
        name for name, held in table.columns.items() if held["required"] and name not in names
    ]
    if needed:
        raise SinkError(
            f"the table does not take rows without {', '.join(map(repr, needed))}",
            where=where,
            do="Give the column a default, or make it in the transform",
        )
    return [_match(sink, field, table, where) for field in fields]


def _match(sink: JdbcSink, field: StructField, table: Table, where: str) -> Written:
    held, declared = table.columns[field.name], sink.types.get(field.name)
    if declared is None and not holds(held["type"], field.dataType):
        raise SinkError(
            f"column {field.name!r} is {held['type']} in the table, which cannot hold every value "
            f"of {field.dataType.simpleString()}",
            where=where,
            do=f"If it shall be so, write `types: {{{field.name}: {held['type']}}}`: PostgreSQL "
            "then converts, and refuses what does not fit; or cast it in the transform",
        )
    if declared is not None and (
        table.declared[field.name] != held["base"]
        or _modifiers(declared) != _modifiers(held["type"])
    ):
        raise SinkError(
            f"column {field.name!r} is {held['type']} in the table and {declared} in the sink",
            where=where,
            do=f"Write `types: {{{field.name}: {held['type']}}}`, or alter the table",
        )
    return Written(field.name, field.dataType, held["type"], held["base"], held["text"])


def _modifiers(type_: str) -> str:
    """`numeric(10, 2)` -> 10,2."""
    found = re.search(r"\(([^)]*)\)", type_)
    return found[1].replace(" ", "") if found else ""
