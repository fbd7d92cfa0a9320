"""Delta tables, by their log."""

import json
from typing import TYPE_CHECKING, Any

from ..backlog import oldest_version, table_version
from ..errors import SourceError
from ..spec import Step, TableSource
from ..storage import Paths, in_bucket
from ..storage.buckets import delta_options

if TYPE_CHECKING:
    from deltalake import DeltaTable

_JSON_NAMES = {"bigint": "long", "int": "integer", "tinyint": "byte", "smallint": "short"}
"""Type as a pipeline may write it -> as Delta and Spark do in JSON."""
_PLAIN = {"string", "binary", "boolean", "date", "timestamp", "timestamp_ntz"} | {
    *("byte", "short", "integer", "long", "float", "double")
}


def look_at_table(source: TableSource, place: str) -> str:
    """Version and columns of a table that is read.

    Raises SluiceError for one that is not there, lacks the commit that a first run begins at, or
    keeps no feed of its changes although it is read by it.
    """
    newest = table_version(place)
    if newest is None:
        raise SourceError(
            "there is no Delta table",
            where=place,
            do="Mend `source.path`, or run what writes it first",
        )
    start = None if isinstance(source.start, str) else source.start.version
    oldest = oldest_version(place) or 0
    if start is not None and not oldest <= start <= newest + 1:
        raise SourceError(
            f"the table's log has versions {oldest} to {newest}",
            where=f"{place}: source.start",
            value=start,
            do="Write a version that is there, or a timestamp",
        )
    table = _open(place)
    feed = table.metadata().configuration.get("delta.enableChangeDataFeed", "false").lower()
    if source.change_feed and feed != "true":
        raise SourceError(
            "the table keeps no feed of its changes",
            where=place,
            do=f"Run ALTER TABLE delta.`{place}` SET TBLPROPERTIES "
            "(delta.enableChangeDataFeed = true), or leave out `change_feed`",
        )
    says = f"version {newest}, {len(table.schema().fields)} columns"
    return says + (", keeps its changes" if feed == "true" else "")


def known_columns(step: Step, paths: Paths) -> dict[str, Any] | None:
    """Name -> type, as Spark writes it in JSON, of the user's columns of a step: those its target
    has, else those its source declares; None where only a run tells."""
    place = step.target_path(paths) if step.target is not None and not step.target.name else ""
    if place and table_version(place) is not None:
        fields = json.loads(_open(place).schema().to_json())["fields"]
        found = {field["name"]: field["type"] for field in fields}
        return {name: type_ for name, type_ in found.items() if not name.startswith("_")}
    if step.transform is not None or not step.columns:
        return None
    named = {name: type_.strip().lower() for name, type_ in step.columns.items()}
    types = {name: _JSON_NAMES.get(type_, type_) for name, type_ in named.items()}
    plain = all(type_ in _PLAIN or type_.startswith("decimal(") for type_ in types.values())
    return types if plain else None


def _open(place: str) -> "DeltaTable":
    """A table that is there. Raises SourceError for one that cannot be read."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        return DeltaTable(place, storage_options=delta_options() if in_bucket(place) else None)
    except (DeltaError, OSError) as error:
        raise SourceError(
            f"the table's log cannot be read: {' '.join(str(error).split())[:300]}",
            where=place,
            do="Restore the table, or name another",
        ) from None
