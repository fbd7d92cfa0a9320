"""XML files -> records -> columns, with a defect for every element that is none of this schema, and
for what is left of a file that is no well-formed XML.

Spark's own reader passes over what follows an element, takes the last of two elements of one
name, and leaves out a broken end of a file: all without a word. So files are cut here, and each
element is parsed on its own.
"""

import re
from collections.abc import Callable
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ...spark.columns import DEFECT, RAW, field
from ...spec import FileSource, Records
from .ddl import beyond_range, schema_ddl
from .leaves import find_years, is_scalar
from .reading import Reading

_HIDDEN = r"<!--[\s\S]*?(?:-->|\z)|<!\[CDATA\[[\s\S]*?(?:\]\]>|\z)"
"""What may hold tags that are none. Every repetition around it is possessive, so that Java neither
recurses nor goes back on a long element."""


def _row_pattern(tag: str) -> str:
    """A row's element, to the end of the file where it is not closed."""
    name, end = re.escape(tag), rf"</{re.escape(tag)}\s*+>"
    start = rf"<{name}(?=[\s/>]|\z)(?:[^>\"']++|\"[^\"]*+(?:\"|\z)|'[^']*+(?:'|\z))*+"
    body = rf"(?:[^<]++|{_HIDDEN}|(?!{end})<)*+"
    return rf"{start}(?:(?<=/)>|>{body}(?:{end}|\z)|\z)"


def split_elements(text: str, source: Records) -> Column:
    """The records of a whole file: its row elements; and what stands around them, where that is no
    well-formed XML, or where there is no row in it although there are elements."""
    pattern = F.lit(rf"{_HIDDEN}|{_row_pattern(_tag(source))}")
    found = F.regexp_extract_all(text, pattern, F.lit(0))
    rows = F.filter(found, lambda part: ~part.startswith("<!"))
    around = F.btrim(F.regexp_replace(text, pattern, F.lit("")), F.lit(" \t\r\n"))
    parsed = F.from_xml(around, f"{DEFECT} string", _options(source))[DEFECT]
    broken = parsed.isNotNull() | ~around.endswith(">")
    unfound = (F.size(rows) == 0) & around.rlike(r"<[\w:][^>]*+>[\s\S]*?<[\w:]")
    return F.when((around != "") & (broken | unfound), F.array_append(rows, around)).otherwise(rows)


def parse_xml(records: DataFrame, source: Records) -> Reading:
    """`_raw` -> the schema's columns, a defect and the fields nobody declared."""
    options = _options(source)
    typed = F.from_xml(RAW, schema_ddl(source.columns, corrupt=True), options)
    records = records.withColumn("_typed", typed)
    kinds = {field.name: field.dataType for field in records.select("_typed.*").schema.fields}
    is_row = F.col(RAW).rlike(rf"^<{re.escape(_tag(source))}(?=[\s/>]|\z)")
    fits = is_row & F.col(f"_typed.{DEFECT}").isNull() & F.col("_typed").isNotNull()
    plain = {name: value for name, value in options.items() if name != "columnNameOfCorruptRecord"}
    # Where it does not fit the parser would raise.
    told = F.when(fits & F.col("_valid"), F.from_xml(RAW, "variant", plain))
    records = records.withColumn("_told", told)
    records = records.withColumn("_fields", F.col("_told").try_cast("map<string,variant>"))
    nested = {name: kind for name, kind in kinds.items() if not is_scalar(kind)}
    typed_value = partial(field, "_typed")
    defect = F.coalesce(
        F.when(~is_row, _why_around(source)),
        F.when(~fits, F.lit("not a well-formed element of this schema")),
        *_find_twice(source),
        beyond_range(source, typed_value, lambda name: ~F.col(RAW).rlike(r"[+-]?Inf")),
        *find_years(nested, typed_value),
    )
    fields = [typed_value(c).alias(c) for c in source.columns]
    rescued = F.lit(None).cast("string")
    if source.unknown_fields != "ignore":
        rescued = F.when(defect.isNull(), _find_unknown(source))
    return Reading(records, fields, defect, rescued)


def _tag(source: Records) -> str:
    assert isinstance(source, FileSource) and source.row_tag is not None
    return source.row_tag


def _options(source: Records) -> dict[str, str]:
    assert isinstance(source, FileSource)
    return {
        **source.options,
        "rowTag": _tag(source),
        "attributePrefix": source.attribute_prefix,
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": DEFECT,
    }


def _why_around(source: Records) -> Column:
    """What is wrong with a file whose rest is a record."""
    nothing = F.col(RAW).startswith("<") & F.col(RAW).endswith(">")
    nothing &= F.from_xml(RAW, f"{DEFECT} string", _options(source))[DEFECT].isNull()
    return F.when(nothing, F.lit(f"no element <{_tag(source)}> in the file")).otherwise(
        F.lit(f"around its <{_tag(source)}> the file is no well-formed XML: cut off, or broken")
    )


def _find_twice(source: Records) -> list[Column]:
    """Defects where an element or attribute comes more than once and its column holds one value."""
    found = F.map_entries("_fields")
    return [
        F.when(F.exists(found, _is_list_of(name)), F.lit(f"{name} is written twice"))
        for name, type_ in source.columns.items()
        if not type_.strip().lower().startswith(("array", "variant"))
    ]


def _is_list_of(name: str) -> Callable[[Column], Column]:
    def look(entry: Column) -> Column:
        is_list = F.schema_of_variant(entry["value"]).startswith("ARRAY")
        return (F.lower(entry["key"]) == name.lower()) & is_list

    return look


def _find_unknown(source: Records) -> Column:
    """JSON of the elements, attributes and text outside the schema; NULL where there are none."""
    known = [name.lower() for name in source.columns]
    others = F.map_filter("_fields", lambda name, _: ~F.lower(name).isin(*known))
    text = F.nullif(F.to_json("_told"), F.lit("null"))
    return F.when(F.col("_fields").isNull(), text).otherwise(
        F.when(F.size(others) > 0, F.to_json(others))
    )
