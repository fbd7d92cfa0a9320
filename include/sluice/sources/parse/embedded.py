"""Reads formats whose files carry their schema; columns nobody declared are kept in `_rescued`."""

from typing import cast

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import DataStreamReader
from pyspark.sql.types import (
    AtomicType,
    DataType,
    DecimalType,
    IntegralType,
    StructField,
    StructType,
)

from ...errors import SourceError
from ...spark.columns import DEFECT, RAW, RESCUED, col
from ...spec import FileSource
from .ddl import schema_ddl
from .layouts import Layout
from .leaves import find_years

_WIDER = ({"tinyint", "smallint", "int", "bigint"}, {"float", "double"})
_FITS = {
    "smallint": {"tinyint"},
    "int": {"tinyint", "smallint"},
    "bigint": {"tinyint", "smallint", "int"},
    "double": {"float", "tinyint", "smallint", "int"},
}
"""Type -> narrower ones whose every value it can hold."""


def read_embedded(
    spark: SparkSession,
    reader: DataStreamReader,
    location: str,
    source: FileSource,
    layouts: dict[Layout, list[str]],
    metadata: list[Column],
) -> DataFrame:
    """The schema's columns, `_raw` (NULL: there is no text), `_defect`, `_rescued` and the
    metadata. Raises SourceError where files contradict each other."""
    if source.format != "avro":
        _check_types(spark, source, layouts)
    extra = {} if source.unknown_fields == "ignore" else _unknown_columns(spark, source, layouts)
    frame = (
        reader.schema(schema_ddl({**source.columns, **extra})).format(source.format).load(location)
    )
    nothing = F.lit(None).cast("string")
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    times = find_years({name: kinds[name] for name in source.columns}, col)
    defect = F.coalesce(*times) if times else nothing
    rescued = (
        F.nullif(F.to_json(F.struct(*[col(name) for name in extra])), F.lit("{}"))
        if extra
        else nothing
    )
    return frame.select(
        *[col(c) for c in source.columns],
        nothing.alias(RAW),
        defect.alias(DEFECT),
        rescued.alias(RESCUED),
        *metadata,
    )


def _unknown_columns(
    spark: SparkSession, source: FileSource, layouts: dict[Layout, list[str]]
) -> dict[str, str]:
    """Name -> type of the columns that waiting files have beside the schema; Spark reads the types,
    from one file of each layout."""
    found: dict[str, tuple[str, str, str]] = {}
    for layout, paths in layouts.items():
        if not layout.unknown:
            continue
        fields = zip(_fields(spark, source, paths[0]), layout.columns, strict=True)
        for name, type_ in [
            (field.name, field.dataType.simpleString())
            for field, column in fields
            if column is None
        ]:
            _, first, where = found.get(name.lower(), (name, type_, paths[0]))
            found[name.lower()] = (name, _common_type(name, first, where, type_, paths[0]), where)
    return {name: type_ for name, type_, _ in found.values()}


def _fields(spark: SparkSession, source: FileSource, path: str) -> list[StructField]:
    """The columns of one file as Spark reads them, in the file's order.

    Raises SourceError for a schema Spark refuses.
    """
    try:
        return spark.read.format(source.format).load(path).schema.fields
    except AnalysisException as error:
        raise SourceError(
            "Spark cannot read the file's schema",
            where=path,
            value=str(error).split(". ")[0][:200],
            do="Move the file out of the landing folder",
        ) from None


def _common_type(name: str, first: str, where: str, second: str, here: str) -> str:
    if first == second:
        return first
    for family in _WIDER:
        if {first, second} <= family:
            return "bigint" if "bigint" in family else "double"
    raise SourceError(
        f"files disagree on the type of the undeclared column {name!r}: {first} in {where}, "
        f"{second} here",
        where=here,
        do="Move one of them out of the landing folder, or write `unknown_fields: ignore`",
    )


def _check_types(spark: SparkSession, source: FileSource, layouts: dict[Layout, list[str]]) -> None:
    """Raise SourceError for a column whose type cannot hold what the files have: Spark's ORC reader
    makes NULL of such values in silence.

    Its Parquet reader fails on them and names the file, except where a column is nested in one and
    not in the other, or an unsigned long.
    """
    declared = cast(StructType, StructType.fromDDL(schema_ddl(source.columns)))
    wanted = {f.name: f.dataType for f in declared.fields}
    for layout, paths in layouts.items():
        for field, column in zip(_fields(spark, source, paths[0]), layout.columns, strict=True):
            if column is not None and not _holds(
                wanted[column], field.dataType, strict=source.format == "orc"
            ):
                raise SourceError(
                    f"column {column!r} is {field.dataType.simpleString()} in {len(paths)} "
                    f"file(s) and {wanted[column].simpleString()} in the schema",
                    where=paths[0],
                    do="Mend the schema, or move the files out of the landing folder",
                )


def _holds(wanted: DataType, held: DataType, *, strict: bool) -> bool:
    """True when every value of one type can be read as the other; of nested types, only that both
    are nested alike. strict: the reader checks nothing."""
    if not isinstance(wanted, AtomicType) or not isinstance(held, AtomicType):
        return type(wanted) is type(held)
    if not strict:
        return not (isinstance(held, DecimalType) and isinstance(wanted, IntegralType))
    if isinstance(wanted, DecimalType) and isinstance(held, DecimalType):
        return (
            wanted.scale >= held.scale
            and wanted.precision - wanted.scale >= held.precision - held.scale
        )
    return (
        wanted == held
        or wanted.simpleString() == "string"
        or held.simpleString() in _FITS.get(wanted.simpleString(), ())
    )
