"""Whether rows can be sent to a topic as the sink says, asked before anything is read."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from ...errors import SinkError, SpecError
from ...spark.columns import col
from ...spec import KafkaSink
from .records import BATCH, POSITION

_NESTED = (StructType, ArrayType, MapType, VariantType)


@dataclass(frozen=True)
class _Checked:
    """The columns of the rows, and the sink's place for messages."""

    schema: StructType
    where: str

    def type_of(self, field: str, name: str) -> DataType:
        """The type of a column that a field of the sink names; Spark tells no case apart."""
        for column in self.schema.fields:
            if column.name.lower() == name.lower():
                return column.dataType
        raise SpecError(
            "no such column",
            where=f"{self.where}: {field}",
            value=name,
            do=f"There are: {', '.join(self.schema.names)}",
        )

    def require(self, field: str, name: str, wanted: str, fitting: tuple[type, ...]) -> None:
        """Raise SpecError unless the column is of a fitting type. `wanted`: the types in words."""
        found = self.type_of(field, name)
        if not isinstance(found, fitting):
            self._refuse(field, name, wanted, found)

    def require_flat(self, field: str, name: str) -> None:
        """Raise SpecError for a column that holds more than one value."""
        found = self.type_of(field, name)
        if isinstance(found, _NESTED):
            self._refuse(field, name, "one value", found)

    def _refuse(self, field: str, name: str, wanted: str, found: DataType) -> None:
        raise SpecError(
            f"the column is {found.simpleString()}, not {wanted}",
            where=f"{self.where}: {field}",
            value=name,
            do="Cast it in the transform",
        )


def check_keys(rows: DataFrame, sink: KafkaSink, count: int) -> None:
    """Raise SinkError for rows of a mirrored table that the topic's readers could not tell apart:
    of a key the newest record counts. Args: count: of the rows."""
    keys = rows.select(*map(col, sink.mirrored_by or ())).where(col(sink.key or "").isNotNull())
    found, told = keys.agg(F.count(F.lit(1)), F.count_distinct(F.struct("*"))).collect()[0]
    what = f"{count - found:,} row(s) have NULL as their key" if found < count else ""
    what = what or (f"{found:,} rows have {told:,} keys" if told < found else "")
    if what:
        raise SinkError(
            f"{what}, and of a key readers take the newest record for all there is",
            where=f"sink {sink.title}: key",
            value=sink.key,
            do="Make a column in the transform that every row has, and no two the same",
        )


def check_sink(sink: KafkaSink, schema: StructType, where: str) -> None:
    """Raise SpecError unless rows of a schema can be sent as the sink says. `where`: the step and
    sink, for the message."""
    rows = _Checked(schema, where)
    if isinstance(sink.value, str):
        wanted = "text or bytes; a list of columns is sent as JSON"
        rows.require("value", sink.value, wanted, (StringType, BinaryType))
    for name in sink.value if isinstance(sink.value, list) else ():
        rows.type_of("value", name)
    if sink.key is not None:
        rows.require_flat("key", sink.key)
    if sink.topic_column is not None:
        rows.require("topic_column", sink.topic_column, "text", (StringType,))
    for header, name in sink.headers.items():
        if header in (BATCH, POSITION):
            raise SpecError(
                "every record has this header already",
                where=f"{where}: headers",
                value=header,
                do="Call yours something else",
            )
        rows.require_flat(f"headers: {header}", name)
    for name in sink.options:
        if not name.lower().startswith("kafka."):
            raise SpecError(
                "settings of the producer begin with `kafka.`",
                where=f"{where}: options",
                value=name,
                do=f"Write kafka.{name}",
            )
