"""What the page of a pipeline's quarantine shows: reasons, counts and the last rows.

Never by Spark: no page starts a JVM within Airflow.
"""

from dataclasses import dataclass, field
from datetime import datetime

from ..errors import SluiceError
from ..orchestration.named import load_named
from ..query import StoredTable, Unreadable, count_rows, hide_values, query_stored, tables_of

MAX_ROWS = 50
MAX_TEXT = 400
"""Characters of a value on the page."""
_MAX_REASONS = 40
_MAX_READ = 20_000
"""Characters of a value that are read: a longer record is cut, and is then no JSON in which single
fields could be hidden, so all of it is where a column is `pii`."""
_MOST_SORTED = 1_000_000
"""Rows of a table in which reasons are counted and the newest rows are looked for."""


@dataclass(frozen=True)
class RefusedRow:
    """A row of the quarantine table, masked and cut."""

    when: datetime | None
    run_id: str
    reasons: list[str]
    detail: str
    row: str
    source: str


@dataclass(frozen=True)
class Quarantine:
    """A step's quarantine table. `total`: rows, None where the table's statistics do not say.
    `reasons`: (reason, rows), None where they were not counted. `problem`: why it cannot be
    read, else empty."""

    step: str
    total: int | None = None
    reasons: list[tuple[str, int]] | None = None
    rows: list[RefusedRow] = field(default_factory=list)
    newest: bool = True
    hidden: tuple[str, ...] = ()
    problem: str = ""


def read_quarantines(name: str, reason: str | None = None) -> list[Quarantine]:
    """The quarantine of each step of a pipeline that has refused a row.

    Args: reason: rows with this one only.

    Raises SpecError where the pipeline's file is not there or cannot be read: without it nobody
    knows which columns are `pii`.
    """
    pipeline = load_named(name)
    tables = [t for t in tables_of(pipeline, None) if t.name == f"{t.step.name}__quarantine"]
    return [found for table in tables if (found := _read(table, reason)) is not None]


def _read(table: StoredTable, reason: str | None) -> Quarantine | None:
    """A table's part of the page; None where no run refused a row."""
    step = table.step.name
    try:
        if not table.exists:
            return None
        total = count_rows(table)
        small = total is not None and total <= _MOST_SORTED
        return Quarantine(
            step,
            total,
            _count_reasons(table) if small else None,
            _read_rows(table, reason, newest=small),
            newest=small,
            hidden=tuple(table.pipeline.pii),
        )
    except Unreadable as unreadable:
        problem = (
            f"Only Spark can read this table, and no page starts it: {unreadable}. "
            f"`sluice show {table.pipeline.name} --step {step} --quarantine` shows the rows."
        )
    except SluiceError as error:
        problem = str(error)
    return Quarantine(step, problem=problem)


def _count_reasons(table: StoredTable) -> list[tuple[str, int]]:
    """(reason, rows), the most frequent first; a row may have several."""
    # What is put into these queries is checked names of a spec, numbers and a quoted text.
    query = (
        f"SELECT reason, count(*) AS rows FROM (SELECT unnest(reasons) AS reason FROM "  # noqa: S608
        f"{_quoted(table)}) GROUP BY reason ORDER BY 2 DESC, 1 LIMIT {_MAX_REASONS}"
    )
    answer = query_stored(query, {table.full_name: table}, _MAX_REASONS)
    return [(str(reason), int(rows)) for reason, rows in answer.rows()]


def _read_rows(table: StoredTable, reason: str | None, *, newest: bool) -> list[RefusedRow]:
    """Some rows, masked and cut; the newest first where a table is small enough to sort."""
    text = (reason or "").replace("'", "''")
    condition = f" WHERE array_has(reasons, '{text}')" if reason else ""
    order = ' ORDER BY "_ingested_at" DESC' if newest else ""
    columns = ", ".join(
        f'substr("{name}", 1, {_MAX_READ}) AS "{name}"' for name in ("row", "detail", "_source")
    )
    query = (
        f'SELECT {columns}, reasons, "_run_id", "_ingested_at" '  # noqa: S608
        f"FROM {_quoted(table)}{condition}{order} LIMIT {MAX_ROWS}"
    )
    answer = query_stored(query, {table.full_name: table}, MAX_ROWS)
    hidden, names = table.pipeline.pii, answer.names
    masked = (hide_values(names, row, hidden, table.step) for row in answer.rows())
    return [_cut(dict(zip(names, row, strict=True))) for row in masked]


def _quoted(table: StoredTable) -> str:
    return f"`{table.pipeline.name}`.`{table.name}`"


def _cut(row: dict) -> RefusedRow:
    return RefusedRow(
        row["_ingested_at"] if isinstance(row["_ingested_at"], datetime) else None,
        str(row["_run_id"] or ""),
        [shorten(str(reason)) for reason in row["reasons"] or []],
        *(shorten(str(row[name] or "")) for name in ("detail", "row", "_source")),
    )


def shorten(text: str) -> str:
    """A text of at most MAX_TEXT characters, and how many were left out."""
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}… and more"
