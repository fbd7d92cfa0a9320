"""Types that Parquet, ORC and Avro files state about themselves, as Spark types."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_AVRO = {
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "bytes": "binary",
    "string": "string",
    "null": "string",
}
_AVRO_LOGICAL = {
    "date": "date",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "uuid": "string",
}
_ARROW = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float": "float",
    "halffloat": "float",
    "double": "double",
    "bool": "boolean",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
    "date64[ms]": "date",
    "null": "string",
}


def read_parquet(file: Path) -> dict[str, str]:
    """Columns of a Parquet file, from its footer."""
    from pyarrow import parquet

    return {field.name: _from_arrow(field.type) for field in parquet.read_schema(file)}


def read_orc(file: Path) -> dict[str, str]:
    """Columns of an ORC file, from its footer."""
    from pyarrow import orc

    return {field.name: _from_arrow(field.type) for field in orc.ORCFile(file).schema}


def read_parquet_rows(file: Path) -> Iterator[dict[str, Any]]:
    """Rows of a Parquet file, a group at a time."""
    from pyarrow import parquet

    for batch in parquet.ParquetFile(file).iter_batches(1_000):
        yield from batch.to_pylist()


def read_orc_rows(file: Path) -> Iterator[dict[str, Any]]:
    """Rows of an ORC file, a stripe at a time."""
    from pyarrow import orc

    stripes = orc.ORCFile(file)
    for number in range(stripes.nstripes):
        yield from stripes.read_stripe(number).to_pylist()


def read_avro(file: Path) -> dict[str, str]:
    """Columns of an Avro file, from the schema in its header."""
    record = json.loads(_avro_header(file.read_bytes()[: 1 << 20])["avro.schema"])
    return {field["name"]: _from_avro(field["type"]) for field in record["fields"]}


def _from_arrow(type_: Any) -> str:
    from pyarrow import types

    if types.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp_ntz"
    if types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if types.is_struct(type_):
        return (
            "struct<"
            + ", ".join(f"{field.name}: {_from_arrow(field.type)}" for field in type_)
            + ">"
        )
    if types.is_map(type_):
        return f"map<{_from_arrow(type_.key_type)}, {_from_arrow(type_.item_type)}>"
    if types.is_list(type_) or types.is_large_list(type_):
        return f"array<{_from_arrow(type_.value_type)}>"
    return _ARROW.get(str(type_), "string")


def _from_avro(type_: Any) -> str:
    if isinstance(type_, list):
        known = [t for t in type_ if t != "null"]
        return _from_avro(known[0]) if len(known) == 1 else "string"
    if isinstance(type_, str):
        return _AVRO.get(type_, "string")
    logical = type_.get("logicalType")
    if logical == "decimal":
        return f"decimal({type_['precision']},{type_.get('scale', 0)})"
    if logical in _AVRO_LOGICAL:
        return _AVRO_LOGICAL[logical]
    kind = type_["type"]
    if kind == "record":
        return (
            "struct<"
            + ", ".join(
                f"{field['name']}: {_from_avro(field['type'])}" for field in type_["fields"]
            )
            + ">"
        )
    if kind == "array":
        return f"array<{_from_avro(type_['items'])}>"
    if kind == "map":
        return f"map<string, {_from_avro(type_['values'])}>"
    return {"fixed": "binary", "enum": "string"}.get(kind) or _from_avro(kind)


def _avro_header(data: bytes) -> dict[str, bytes]:
    """The metadata map of an Avro container file.

    Blocks of key and value, each with its length as a zigzag number.
    """
    if data[:4] != b"Obj\x01":
        raise ValueError("it does not start like an Avro file")
    position, found = 4, {}

    def read_number() -> int:
        nonlocal position
        shift = number = 0
        while True:
            byte = data[position]
            position += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (number >> 1) ^ -(number & 1)

    def read_bytes() -> bytes:
        nonlocal position
        length = read_number()
        position += length
        return data[position - length : position]

    while count := read_number():
        if count < 0:  # then the block's size in bytes comes first
            read_number()
        for _ in range(abs(count)):
            key = read_bytes().decode()
            found[key] = read_bytes()
    return found
