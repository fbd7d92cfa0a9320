"""Values of Avro as rows: each one record, read with the schema that it was written with."""

import json
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro, to_avro

from ...errors import SpecError
from ...spark.columns import DEFECT, RAW, RESCUED, SOURCE, field
from ...spec import KafkaSource
from .leaves import find_years


def parse_avro(records: DataFrame, source: KafkaSource, folder: Path) -> DataFrame:
    """Avro values -> the schema's columns.

    A registry's header is taken off, not looked up: the schema file says how the values were
    written. Args: folder: of the pipeline's YAML. Raises SpecError for a schema that cannot be
    read.
    """
    avro = source.avro_values
    schema = _read_schema(folder / avro.schema_file)
    body, framed = F.col("_value"), F.lit(True)
    if avro.wire == "confluent":
        framed = (F.substring("_value", 1, 1) == F.lit(b"\x00")) & (F.length("_value") >= 5)
        body = F.when(framed, F.substring("_value", 6, 2**31 - 1))
    frame = records.withColumn("_record", from_avro(body, schema, {"mode": "PERMISSIVE"}))
    fields = frame.select("_record.*").schema.fields
    held = {field.name: field.dataType.simpleString() for field in fields}
    columns, misfits = _fit(source.columns, held)
    kinds = {field.name: field.dataType for field in frame.select(*columns).schema.fields}
    fitted = dict(zip(source.columns, columns, strict=True))
    defect = F.coalesce(
        F.when(~framed, F.lit("no zero byte and schema id before the record")),
        F.when(_is_unread(schema, body), F.lit("not an Avro record of this schema")),
        *misfits,
        *find_years(kinds, lambda name: fitted[name]),
        F.lit(None).cast("string"),
    )
    rescued = _rescue(source, held)
    return frame.select(
        *columns, "_value", RAW, defect.alias(DEFECT), rescued.alias(RESCUED), SOURCE
    )


def _read_schema(path: Path) -> str:
    try:
        return json.dumps(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise SpecError(
            f"the Avro schema cannot be read: {error}",
            where="source.avro.schema_file",
            value=str(path),
            do="Write its path relative to the pipeline's YAML",
        ) from None


def _fit(declared: dict[str, str], held: dict[str, str]) -> tuple[list[Column], list[Column]]:
    """The declared columns out of the record, and what is wrong with each where it does not fit."""
    columns, misfits = [], []
    for name, type_ in declared.items():
        value = field("_record", name) if name in held else F.lit(None)
        fitted = value.try_cast(type_)
        columns.append(fitted.alias(name))
        misfits.append(F.when(value.isNotNull() & fitted.isNull(), F.lit(f"{name} is not {type_}")))
    return columns, misfits


def _rescue(source: KafkaSource, held: dict[str, str]) -> Column:
    """The record's fields that are not declared, as JSON."""
    unknown = [field("_record", name).alias(name) for name in held if name not in source.columns]
    if not unknown or source.unknown_fields == "ignore":
        return F.lit(None).cast("string")
    return F.nullif(F.to_json(F.struct(*unknown)), F.lit("{}"))


def _is_unread(schema: str, body: Column) -> Column:
    """True for a value that Spark could not read: it makes a record of NULLs of it, which is one of
    the schema only where every field may be NULL."""
    fields = json.loads(schema).get("fields", [])
    unread = F.col("_record").isNull()
    if not fields:
        return unread
    nulls = [field("_record", one["name"]).isNull() for one in fields]
    may_be_null = all(
        one["type"] == "null" or (isinstance(one["type"], list) and "null" in one["type"])
        for one in fields
    )
    differs = to_avro("_record", schema) != body if may_be_null else F.lit(True)
    return unread | (reduce(Column.__and__, nulls) & differs)
