"""JSON text -> columns, with a defect for every record that is not one object of this schema."""

import re
from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from ...spark.columns import DEFECT, RAW, RESCUED, col, field
from ...spec import Records
from .ddl import YEARS, beyond_range, is_time, schema_ddl
from .json_doubts import followed_by, is_plain
from .leaves import find_leaf, find_years, holds_time, is_scalar, write_times
from .reading import Reading

_BIG_EXPONENT = r"[:\[,]\s*-?[0-9][0-9.]*[eE]\+?[0-9]{3}"
"""A number that may be read as Infinity, also where the schema wants text or knows no such
field."""
_LONG_NUMBER = "^-?[0-9]{13,}$"
_OBJECTS = "array<map<string,string>>"
_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_LONE_SURROGATE = rf"(?<!\\)(?:\\\\)*+(?:{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW})"
"""An escape that names half a character: Spark writes `?` in its place."""


def parse_json(lines: DataFrame, source: Records) -> Reading:
    """`_raw` -> the schema's columns, a defect and the fields nobody declared.

    The first parse passes over in silence: text after the record, a field written twice, a number
    that only fits as Infinity, and fields nobody declared. A record that could have one of these is
    parsed again, as an array's element, into names and texts. Not every record is: that costs three
    times the first parse.
    """
    options = {
        "maxStringLen": str(2**31 - 1),
        **source.options,
        "mode": "PERMISSIVE",
    }  # Jackson's own limit is 20 million characters
    lines = lines.withColumn(
        "_typed",
        F.from_json(
            RAW,
            schema_ddl(source.columns, corrupt=True),
            {**options, "columnNameOfCorruptRecord": DEFECT},
        ),
    )
    kinds = {field.name: field.dataType for field in lines.select("_typed.*").schema.fields}
    nested = {name: kind for name, kind in kinds.items() if not is_scalar(kind)}
    plain = is_plain(source, {name: kinds[name] for name in source.columns})
    doubtful = ~F.coalesce(plain, F.lit(False))
    others = [name for name in lines.columns if name != "_typed"]
    fields = [field("_typed", c).alias(c) for c in source.columns]
    # The fields in this projection, and before `_told`: in one above it Spark would try each of
    # them in all that `_told` is made of, and plan for seconds.
    told = F.when(doubtful, _look_again(source, options, nested)).alias("_told")
    lines = lines.select(*others, *fields, told)
    defect = F.coalesce(
        beyond_range(source, col, _has_digits), *find_years(nested, col), F.col(f"_told.{DEFECT}")
    )
    rescued = F.when(defect.isNull(), F.col(f"_told.{RESCUED}"))
    return Reading(lines, [col(name) for name in source.columns], defect, rescued)


def _look_again(source: Records, options: dict[str, str], nested: dict[str, DataType]) -> Column:
    """What another parse into names and texts says of a record, in a struct of `_defect` and
    `_rescued`.

    By a lambda, which parses once however often its result is asked for: in a column of its own
    every record would be copied once more, also those that nobody looks at again.
    """

    def tell(objects: Column) -> Column:
        fields = F.get(objects, F.lit(0))
        rescued = F.lit(None).cast("string")
        if source.unknown_fields != "ignore":
            unknown = F.map_filter(fields, lambda name, _: ~name.isin(*source.columns))
            rescued = F.when(F.size(unknown) > 0, F.to_json(unknown))
        defect = _find_defect(source, options, nested, objects)
        return F.struct(defect.alias(DEFECT), rescued.alias(RESCUED))

    objects = F.from_json(followed_by(""), _OBJECTS, options)
    return F.get(F.transform(F.array(objects), tell), F.lit(0))


def _find_wrapped(fields: Column, nested: dict[str, DataType]) -> Iterator[Column]:
    """The same where a time was a number so large that it may have wrapped around: seen in what was
    written."""

    def look(text: Column, kind: DataType) -> Column | None:
        return text.rlike(_LONG_NUMBER) if holds_time(kind) else None

    for name, kind in nested.items():
        if (texts := write_times(kind)) == kind:
            continue
        # It takes maps as well, whatever its types say.
        written = F.from_json(fields[name], texts)  # type: ignore[arg-type]
        if (wrapped := find_leaf(written, kind, look)) is not None:
            yield F.when(wrapped, F.lit(f"{name}: {YEARS}"))


def _find_defect(
    source: Records, options: dict[str, str], nested: dict[str, DataType], objects: Column
) -> Column:
    """Why a doubtful record is none of this schema; NULL when it is one. Args: objects: names and
    texts of the record, and of what stands behind it."""
    raw, fields = F.col(RAW), F.get(objects, F.lit(0))
    names, followed = F.map_keys(fields), F.from_json(followed_by(",{}"), _OBJECTS, options)
    alone = (F.size(objects) == 1) & (~raw.contains("]") | (F.size(followed) == 2))
    return F.coalesce(
        F.when(
            F.col(f"_typed.{DEFECT}").isNotNull() | F.col("_typed").isNull(),
            _why_not(source, fields),
        ),
        F.when(~F.coalesce(alone, F.lit(False)), F.lit("more than one JSON value")),
        F.when(F.size(F.array_distinct(names)) < F.size(names), F.lit("a field is written twice")),
        *[
            F.when(fields[name].rlike(_LONG_NUMBER) & _has_digits(name), F.lit(f"{name}: {YEARS}"))
            for name, type_ in source.columns.items()
            if is_time(type_)
        ],
        *_find_wrapped(fields, nested),
        F.when(
            raw.rlike(_BIG_EXPONENT)
            & F.exists(
                F.map_values(fields),
                lambda text: text.contains('"Infinity"') | text.contains('"-Infinity"'),
            ),
            F.lit("a number beyond the range of double"),
        ),
        F.when(
            (raw.contains("\\ud") | raw.contains("\\uD")) & raw.rlike(_LONE_SURROGATE),
            F.lit("half of a surrogate pair, which is no character"),
        ),
    )


def _why_not(source: Records, fields: Column) -> Column:
    """What is wrong with a record Spark cannot fit into the schema: the columns whose value is
    there and does not fit, else what can be said."""
    misfits = [
        F.when(
            fields[name].isNotNull() & field("_typed", name).isNull(),
            F.lit(f"{name} is not {type_}"),
        )
        for name, type_ in source.columns.items()
    ]
    named = F.nullif(F.concat_ws(", ", *misfits), F.lit(""))
    return F.when(fields.isNull(), F.lit("not a JSON object")).otherwise(
        F.coalesce(named, F.lit("not a JSON record of this schema"))
    )


def _has_digits(name: str) -> Column:
    """True where the record gives a field as a number: Spark writes it as Infinity in the map as
    well, so the text itself is asked."""
    return F.col(RAW).rlike(f'"{re.escape(name)}"\\s*:\\s*-?[0-9]')


def split_documents(text: str, valid: str) -> Column:
    """The records of a whole file: the elements of an array, else the one document it is."""
    is_array = F.btrim(F.col(text), F.lit(" \t\r\n")).startswith("[")
    # In brackets once more: what stands after the array makes it two values, which are refused as
    # one record.
    arrays = F.from_json(F.concat(F.lit("["), F.col(text), F.lit("\n]")), "array<array<string>>")
    elements = F.when(F.size(arrays) == 1, F.get(arrays, F.lit(0)))
    return F.when(col(valid) & is_array, F.coalesce(elements, F.array(text))).otherwise(
        F.array(text)
    )
