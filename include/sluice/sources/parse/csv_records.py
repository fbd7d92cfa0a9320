"""CSV text -> columns, each file by its own header, with a defect for every record that does not
fit it."""

from collections.abc import Callable
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...spark.columns import DEFECT, RAW, RESCUED, field
from ...spec import Records
from .ddl import beyond_range, schema_ddl
from .headers import csv_option, record_pattern
from .layouts import Layout
from .reading import Reading

_READER_ONLY = {
    "linesep",
    "compression",
    "modifiedafter",
    "modifiedbefore",
    "maxfileage",
    "latestfirst",
    "basepath",
    "header",
    "multiline",
    "enforceschema",
    "encoding",
}


def split_records(text: str, source: Records) -> Column:
    """The records of a whole file, blank ones included."""
    return F.regexp_extract_all(F.col(text), F.lit(record_pattern(source)), F.lit(0))


def parse_csv(
    lines: DataFrame,
    source: Records,
    layouts: dict[Layout, list[str]],
    among: Callable[[list[str]], Column],
) -> Reading:
    """`_raw` -> the schema's columns, a defect and the fields nobody declared; header lines are no
    records, wherever in the file they stand.

    Each parse is a column of its own: taken apart in the same projection, Spark would parse once
    for every field.
    """
    comment = csv_option(source, "comment", default="")
    lines = lines.where(~F.col("_valid") | ~F.col(RAW).startswith(comment)) if comment else lines
    plain = Layout("", tuple(source.columns), tuple(source.columns))
    parsed, is_header = F.lit(None), F.lit(False)
    for number, layout in enumerate(list(layouts) or [plain]):
        here = among(layouts[layout]) if number else F.lit(True)
        lines = lines.withColumn(f"_row_{number}", F.when(here, _parse_row(source, layout)))
        fitted = _fit(source, layout, f"_row_{number}")
        parsed = F.when(here, fitted).otherwise(parsed) if number else fitted
        is_header = F.when(here, _is_header(layout)).otherwise(is_header)
    lines = lines.where(~is_header | ~F.col("_valid")).withColumn("_parsed", parsed)
    fields = [field("_parsed", name).alias(name) for name in source.columns]
    return Reading(lines, fields, field("_parsed", DEFECT), field("_parsed", RESCUED))


def _is_header(layout: Layout) -> Column:
    """A first line that names no column of the schema is a record like all others: the file has no
    header."""
    return F.col(RAW) == layout.line if layout.line and any(layout.columns) else F.lit(False)


def _parse_row(source: Records, layout: Layout, *, as_text: bool = False) -> Column:
    """A record parsed in the order of its file's header."""
    types = {
        c or f"_unknown_{i}": "string" if as_text or c is None else source.columns[c]
        for i, c in enumerate(layout.columns)
    }
    passed = {k.lower(): v for k, v in source.options.items() if k.lower() not in _READER_ONLY}
    options = {
        "escape": csv_option(source, "quote", default='"'),
        **passed,
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": DEFECT,
    }
    return F.from_csv(RAW, schema_ddl(types, corrupt=True), options)


def _fit(source: Records, layout: Layout, row: str) -> Column:
    """The columns by name, the rest of the record as JSON, and a defect when the record does not
    fit its header."""
    fields = [
        (field(row, c) if c in layout.columns else F.lit(None).cast(t)).alias(c)
        for c, t in source.columns.items()
    ]
    unknown = [
        F.col(f"{row}._unknown_{i}").alias(layout.names[i])
        for i, c in enumerate(layout.columns)
        if c is None
    ]
    rescued = F.lit(None).cast("string")
    if unknown and source.unknown_fields != "ignore":
        rescued = F.nullif(F.to_json(F.struct(*unknown)), F.lit("{}"))
    defect = _defect(source, layout, row)
    return F.struct(*fields, defect.alias(DEFECT), F.when(defect.isNull(), rescued).alias(RESCUED))


def _why_not(declared: Records, row: str, texts: Column) -> Column:
    """What is wrong with a record Spark cannot fit into its header: the number of its fields, or
    the columns whose value does not fit."""
    misfits = [
        F.when(
            texts.getField(c).isNotNull() & field(row, c).isNull(),
            F.lit(f"{c} is not {t}"),
        )
        for c, t in declared.columns.items()
    ]
    named = F.nullif(F.concat_ws(", ", *misfits), F.lit(""))
    return F.when(
        texts.isNull() | texts.getField(DEFECT).isNotNull(),
        F.lit("not as many fields as the header"),
    ).otherwise(F.coalesce(named, F.lit("not a CSV record of this schema")))


def _defect(source: Records, layout: Layout, row: str) -> Column:
    if not any(layout.columns):
        return F.lit("the file's first line names none of the schema's columns")
    quote_mark = csv_option(source, "quote", default='"')
    declared = source.model_copy(
        update={"columns": {c: t for c, t in source.columns.items() if c in layout.columns}}
    )
    texts = _parse_row(source, layout, as_text=True)
    return F.coalesce(
        F.when(
            F.col(RAW).contains(quote_mark)
            & ~F.col(RAW).rlike(f"^{record_pattern(source, closed=True)}$"),
            F.lit("a quoted value is not closed"),
        )
        if quote_mark
        else F.lit(None),
        F.when(
            F.col(row).isNull() | F.col(f"{row}.{DEFECT}").isNotNull(),
            _why_not(declared, row, texts),
        ),
        beyond_range(
            declared, partial(field, row), lambda name: texts.getField(name).rlike("[0-9]")
        ),
    )
