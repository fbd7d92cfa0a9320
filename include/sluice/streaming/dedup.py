"""One row per key: within the batch, and against the table.

The table is the memory: an insert-only MERGE, pruned to the event times in which a copy of this batch's rows can lie.
"""

from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, StructType

from ..spark.columns import CONTENT, DIFFERS, TIME, col, quote
from ..spec import Step

_DAY = 86_400_000_000
"""Microseconds; a date stands for any moment of its day."""


def compares_whole_rows(keys: list[str], business: StructType) -> bool:
    """True when copies are equal in every column, so that any of them may stand for all."""
    return set(keys) >= set(business.names)


def _content(business: StructType, row: str = "", held: set[str] | None = None) -> str:
    """SQL: one number for what a row says. NULL adds nothing to it, so a column that the table does not have yet reads as NULL; maps have no hash of their own."""
    names = [
        f"{row}{quote(f.name)}"
        if not isinstance(f.dataType, MapType)
        else f"to_json({row}{quote(f.name)})"
        for f in business.fields
        if held is None or f.name.lower() in held
    ]
    return f"xxhash64({', '.join(names) or 'NULL'})"


def _parse_order(step: Step) -> list[tuple[str, bool]]:
    """(column, descending) of each term of `order_by`."""
    return [(term.split()[0], term.lower().endswith(" desc")) for term in step.dedup.order_by]


def _reach(step: Step, business: StructType) -> int | None:
    """How far apart copies may lie, microseconds; None without a bound, and for times that are text, which cannot be compared with the table's cheaply."""
    bounded = step.dedup.within != "forever" and business[
        step.event_time.column
    ].dataType.simpleString() in ("timestamp", "timestamp_ntz", "date")
    return int(step.dedup.within.total_seconds() * 1_000_000) if bounded else None


def reduce_by_key(
    rows: DataFrame,
    step: Step,
    keys: list[str],
    business: StructType,
    spread: int,
    last: Column | None = None,
) -> DataFrame:
    """Keep one row a key: the first by `order_by`, then by content, so that no cut of the backlog changes it.

    Rows of a key with a gap of more than `within` between them are no copies; each side of the gap keeps one. Args: spread: microseconds between the
    oldest and the newest row; with less than `within` no gap is looked for. last: rows that stand behind all others. Out: the same columns and `_content`, `_differs` (another row of the key said something else).
    """
    if compares_whole_rows(keys, business):
        return rows.dropDuplicates(keys).withColumns({CONTENT: F.lit(0), DIFFERS: F.lit(False)})
    ranks = [
        col(name).desc() if descending else col(name).asc()
        for name, descending in _parse_order(step)
    ]
    reach, columns = _reach(step, business), [col(k) for k in keys]
    if reach is not None and spread > reach:
        in_time = Window.partitionBy(*columns).orderBy(F.col(TIME))
        gap = F.coalesce(
            (F.unix_micros(TIME) - F.lag(F.unix_micros(TIME)).over(in_time) > reach).cast("int"),
            F.lit(0),
        )
        rows, columns = (
            rows.withColumn("_gap", gap).withColumn("_era", F.sum("_gap").over(in_time)),
            [*columns, F.col("_era")],
        )
    same_key = Window.partitionBy(*columns)
    order = same_key.orderBy(*([last.asc()] if last is not None else []), *ranks, F.col(CONTENT))
    marked = rows.withColumn(CONTENT, F.expr(_content(business)))
    ranked = marked.withColumns(
        {
            "_rank": F.row_number().over(order),
            DIFFERS: F.min(CONTENT).over(same_key) != F.max(CONTENT).over(same_key),
        }
    )
    return ranked.where("_rank = 1").drop("_rank", "_gap", "_era")


def beats_condition(step: Step, business: StructType, held: set[str]) -> str:
    """SQL under which row `s` ranks before row `t` of the table, in the very order of `reduce_by_key` (NULL first ascending, last descending).

    Args: held: lower-case names of the table's columns.
    """
    verdict = f"{_content(business, 's.')} < {_content(business, 't.', held)}"
    for name, descending in reversed(_parse_order(step)):
        s, t = f"s.{quote(name)}", f"t.{quote(name)}" if name.lower() in held else "NULL"
        first = (
            f"coalesce({s} > {t}, {t} IS NULL)"
            if descending
            else f"coalesce({s} < {t}, {s} IS NULL)"
        )
        verdict = f"CASE WHEN {s} <=> {t} THEN {verdict} ELSE {first} END"
    return verdict


def find_conflicts(
    unique: DataFrame,
    table: DataFrame | None,
    condition: str,
    step: Step,
    keys: list[str],
    business: StructType,
) -> Row:
    """Keys of a reduced batch that came with differing content, in the batch or in the table as it was before.

    Out: `conflicts`, how many; `first` and `last`, two of them as text; `overtaken`, how many rank before their row in the table.
    """
    differs, overtaken = F.col(f"s.{DIFFERS}"), F.lit(False)
    rows = unique.alias("s")
    if table is not None:
        held = {name.lower() for name in table.columns}
        matched = F.expr(
            f"t.{quote(keys[0])} IS NOT NULL AND {_content(business, 't.', held)} <> s.{CONTENT}"
        )
        rows, differs = rows.join(table.alias("t"), F.expr(condition), "left"), differs | matched
        overtaken = matched & F.expr(beats_condition(step, business, held))
    text = F.substring(
        F.concat_ws(", ", *[F.col(f"s.{quote(k)}").cast("string") for k in keys]), 1, 80
    )
    counted = [
        F.count("*").alias("conflicts"),
        F.min(text).alias("first"),
        F.max(text).alias("last"),
        F.count_if(overtaken).alias("overtaken"),
    ]
    return rows.where(differs).agg(*counted).first()


def _literal(micros: int, kind: DataType) -> str:
    """A time as a SQL literal of the column's type, so that the comparison reads the file statistics."""
    time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return f"CAST('{time.year:04d}-{time:%m-%d %H:%M:%S.%f}' AS {kind.simpleString()})"


def merge_condition(
    step: Step, keys: list[str], business: StructType, oldest: int, newest: int
) -> str:
    """The MERGE's ON clause. `oldest`, `newest`: the batch's event times, epoch microseconds; NULL equals NULL only where the key is the whole row."""
    equals = "<=>" if step.dedup.keys == "*" else "="
    terms = [f"t.{quote(k)} {equals} s.{quote(k)}" for k in keys]
    reach = _reach(step, business)
    if reach is not None:
        kind, name = business[step.event_time.column].dataType, quote(step.event_time.column)
        low, high = (
            max(oldest - reach - _DAY, -62_135_596_800_000_000),
            min(newest + reach + _DAY, 253_402_300_799_999_999),
        )
        terms.append(f"t.{name} >= {_literal(low, kind)} AND t.{name} <= {_literal(high, kind)}")
        if (
            step.event_time.column not in keys
        ):  # row by row as well: what counts as a copy must not depend on how far apart other rows of the batch are
            terms.append(
                f"abs(unix_micros(CAST(t.{name} AS TIMESTAMP)) - unix_micros(CAST(s.{name} AS TIMESTAMP))) <= {reach}"
            )
    return " AND ".join(terms)
