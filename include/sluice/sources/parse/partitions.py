"""Columns that stand in a file's path: the folders `name=value` it lies in."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...spark.columns import DEFECT, RAW, SOURCE, col
from ...spec import FileSource
from .ddl import YEARS, is_time, outside_years

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Spark and Hive call the folder of rows that have no value."""


def read_partitions(records: DataFrame, source: FileSource) -> DataFrame:
    """Records and the partition columns of the file that each came from. A record of a file that
    lies in no such folder, or in one whose name does not fit the column's type, has a defect; where
    it has no text, its other columns are its text."""
    written = {name: f"_of_{name}" for name in source.partition_columns}
    records = records.withColumn("_path", _unescape(F.col(SOURCE)))
    records = records.withColumns({at: _find_folder(name) for name, at in written.items()})
    types = source.partition_columns.items()
    values = {name: _read_value(col(written[name])).try_cast(type_) for name, type_ in types}
    records = records.withColumns(values)
    wrong = [_find_defect(name, type_, col(written[name])) for name, type_ in types]
    defect = F.coalesce(F.col(DEFECT), *wrong)
    content = F.to_json(F.struct(*[col(name) for name in source.columns]))
    kept = F.coalesce(F.col(RAW), F.when(defect.isNotNull(), content))
    return records.withColumns({DEFECT: defect, RAW: kept})


def _unescape(text: Column) -> Column:
    """`a%20b` -> `a b`; a text with a percent sign that escapes nothing stays as it is."""
    plus = F.replace(text, F.lit("+"), F.lit("%2B"))  # which escapes a blank in forms, not in paths
    return F.coalesce(F.try_url_decode(plus), text)


def _find_folder(name: str) -> Column:
    """What the innermost folder of a partition column is called behind its `=`; NULL where the file
    lies in none."""
    folders = F.split("_path", "/")
    inner = F.slice(folders, 1, F.size(folders) - 1)
    ours = F.filter(inner, lambda folder: folder.startswith(f"{name}="))
    return F.substring(F.try_element_at(ours, F.lit(-1)), len(name) + 2, 2**31 - 1)


def _read_value(written: Column) -> Column:
    """Names are escaped a second time by Spark and Hive, which write them."""
    return F.when(written != _NO_VALUE, _unescape(written))


def _find_defect(name: str, type_: str, written: Column) -> Column:
    """Why a file has no value of a partition column; NULL where it has one, or means none."""
    value = col(name)
    misfit = F.concat(F.lit(f"the folder {name}="), written, F.lit(f" is not {type_}"))
    years = F.when(outside_years(value), f"{name}: {YEARS}") if is_time(type_) else F.lit(None)
    return F.coalesce(
        F.when(written.isNull(), F.lit(f"the file lies in no folder {name}=...")),
        F.when(value.isNull() & (written != _NO_VALUE), misfit),
        years,
    )
