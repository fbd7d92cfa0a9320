"""Delta tables before a run writes to them: where they lie, made where absent, widened where a step
has new columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from ..backlog import table_version
from ..errors import PreflightError
from ..spec import Step
from ..storage import Paths, in_bucket, is_remote, open_path, remove_tree


@dataclass(frozen=True)
class Layout:
    """How a table is laid out when it is created."""

    partition_by: Sequence[str] = ()
    cluster_by: Sequence[str] = ()
    properties: dict[str, str] = field(default_factory=dict)


def ensure_table(
    spark: SparkSession, path: str, schema: StructType, layout: Layout | None = None
) -> None:
    """Create a table, or see that an existing one can take these columns; new ones are added now,
    so that every write finds them.

    Raises PreflightError for a column whose type changed.
    """
    if table_exists(spark, path):
        _widen(spark, path, schema)
        return
    clear_unborn_log(path)
    layout = layout or Layout()
    builder = DeltaTable.createIfNotExists(spark).location(path)
    builder = builder.addColumns(StructType([_nullable(f) for f in schema.fields]))
    builder = builder.partitionedBy(*layout.partition_by) if layout.partition_by else builder
    builder = builder.clusterBy(*layout.cluster_by) if layout.cluster_by else builder
    for key, value in layout.properties.items():
        builder = builder.property(key, value)
    builder.execute()


def table_exists(spark: SparkSession, path: str) -> bool:
    """True where there is a Delta table."""
    if table_version(path) is not None:
        return True
    return is_remote(path) and DeltaTable.isDeltaTable(spark, path)


def _widen(spark: SparkSession, path: str, schema: StructType) -> None:
    held = {f.name.lower(): f for f in spark.read.format("delta").load(path).schema.fields}
    for wanted in schema.fields:
        old = held.get(wanted.name.lower())
        if old is not None and old.dataType != wanted.dataType:
            raise PreflightError(
                f"column {wanted.name!r} is {old.dataType.simpleString()} in the table and "
                f"{wanted.dataType.simpleString()} in the step",
                where=path,
                do="Cast it back in the transform; or rewrite the column once, which keeps every "
                f"row and key: {_rewrite(spark, path, wanted)}; or write to a new table "
                "(`sink.table`) and remove the step's checkpoint: the new table knows no key and "
                "no row of this one, so it is filled from the start of the source",
            )
    added = [_nullable(f) for f in schema.fields if f.name.lower() not in held]
    if added:
        empty = spark.createDataFrame([], StructType(added))
        writer = empty.write.format("delta").option("mergeSchema", "true")
        writer.mode("append").save(path)


def _rewrite(spark: SparkSession, path: str, wanted: StructField) -> str:
    """The statement that gives a column of a table another type, in place."""
    detail = DeltaTable.forPath(spark, path).detail().first()
    parts = detail["partitionColumns"] if detail else []
    by = f".partitionBy({', '.join(map(repr, parts))})" if parts else ""
    name, kind = wanted.name, wanted.dataType.simpleString()
    return (
        f"`t = spark.read.format('delta').load({path!r}); "
        f"t.withColumn({name!r}, t[{name!r}].cast({kind!r})).write.format('delta')"
        f".mode('overwrite').option('overwriteSchema', 'true'){by}.save({path!r})`"
    )


def locate_target(spark: SparkSession, step: Step, paths: Paths) -> str:
    """Where a step's target lies: where the catalog says for a name it knows, else below the root;
    empty for a step without one."""
    name = step.target.name if step.target is not None else None
    if name is not None and spark.catalog.tableExists(name):
        detail = spark.sql(f"DESCRIBE DETAIL {name}").first()  # noqa: S608 (Spark has checked it)
        return str(detail["location"]).removeprefix("file:") if detail else ""
    return step.target_path(paths)


def register(spark: SparkSession, name: str, path: str) -> None:
    """Make a table known to the catalog under a name, where it is not."""
    if not spark.catalog.tableExists(name):
        spark.sql(f"CREATE TABLE {name} USING DELTA LOCATION '{path}'")  # noqa: S608


def clear_unborn_log(path: str) -> None:
    """Remove a log folder without any commit: what a run leaves that was killed while it created
    the table, and Delta then takes for a table that is gone."""
    if is_remote(path) and not in_bucket(path):
        return  # a listing there may be an old one
    log = open_path(path) / "_delta_log"
    if log.exists() and not any(
        p.suffix in (".json", ".parquet") and p.name[0].isdigit() for p in log.iterdir()
    ):
        remove_tree(log)


def _nullable(field_: StructField) -> StructField:
    return StructField(field_.name, field_.dataType, True, field_.metadata)
