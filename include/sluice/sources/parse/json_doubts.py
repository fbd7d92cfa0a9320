"""Whether one parse of a JSON record says all that is to be said of it.

`from_json` passes over in silence: text after the record, a field written twice, a number that only
fits as Infinity, half a character, and fields nobody declared. Nearly all records have none of
these, which counting shows: as many names and closing braces in the text as in what was read of it.
Each name and each brace that was read stands in the text, so equal numbers leave none unread. A
value that holds such signs itself only makes the record doubtful.
"""

from collections.abc import Iterable
from functools import partial, reduce
from operator import add

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from ...spark.columns import DEFECT, RAW, field
from ...spec import Records
from .ddl import is_time
from .json_shape import is_written_in_order
from .leaves import find_doubts, is_full, is_scalar

_HUGE_NUMBER = r"[:\[,]\s*-?(?:[0-9]{13}|[0-9][0-9.]*[eE]\+?[0-9]{3})"
"""A number that may be read as Infinity, also where the schema wants text or knows no such field,
or one that is no time of the years 1 to 9999."""
_BEFORE_COLON, _BROKEN = (" :", "\t:", "':"), ("\r:", "\n:")
"""Ways to write a name that does not end in `":`; the latter not in a line of a file."""
Count = Column | int
_BITS = 63
"""Flags in a number whose sign is left alone."""


def followed_by(more: str) -> Column:
    """The record as an array's first element.

    With another one behind it, a bracket of the record's own cannot end the array unseen.
    """
    return F.concat(F.lit("["), F.col(RAW), F.lit(f"\n{more}]"))


def is_plain(source: Records, kinds: dict[str, DataType]) -> Column:
    """True for a record of which the first parse (`_typed`) says all: one object that fits, each
    name declared and written once, no value in doubt.

    Args: kinds: of the columns in `_typed`.
    """
    fits = F.col("_typed").isNotNull() & F.col(f"_typed.{DEFECT}").isNull()
    otherwise = fits & ~_holds("\\u") & _is_plain_by_signs(source, kinds)
    in_order = is_written_in_order(kinds)
    return otherwise if in_order is None else F.when(fits & in_order, True).otherwise(otherwise)


def _is_plain_by_signs(source: Records, kinds: dict[str, DataType]) -> Column:
    """The same of a record without escaped characters, however it is written."""
    by_names = _is_plain_by_names(source, kinds)
    # Options that allow other spellings of a name make what is counted mean nothing.
    if any(option.lower().startswith("allow") for option in source.options):
        return by_names
    return F.when(_is_plain_by_counts(source, kinds), True).otherwise(by_names)


def _is_plain_by_counts(source: Records, kinds: dict[str, DataType]) -> Column:
    """The quick look: signs in the text are counted, and nothing is parsed."""
    raw = F.col(RAW)
    found = [_count(_typed(name), kind) for name, kind in kinds.items()]
    names = _sum([_how_many(map(_is_named, kinds)), *(names for names, _ in found)])
    braces = _sum([1, *(braces for _, braces in found)])
    terms = [_occurs_at_most('":', names), raw.endswith("}")]
    signs = _BEFORE_COLON if source.is_read_by_lines else _BEFORE_COLON + _BROKEN
    terms += [~_holds(sign) for sign in signs]
    terms += [_is_plain_value(source, name, kind) for name, kind in kinds.items()]
    if all(map(is_scalar, kinds.values())):
        terms.append(~_holds("}", _without_end()))
    else:
        terms += [_occurs_at_most("}", braces), _is_plain_inside(kinds)]
    return reduce(Column.__and__, terms)


def _is_plain_inside(kinds: dict[str, DataType]) -> Column:
    """False where a nested value may not be what was written."""
    nested = {name: kind for name, kind in kinds.items() if not is_scalar(kind)}
    found = [find_doubts(_typed(name), kind) for name, kind in nested.items()]
    if None in found:
        return ~F.col(RAW).rlike(_HUGE_NUMBER)
    doubts = [F.coalesce(one, F.lit(False)) for some in found for one in some or ()]
    return ~reduce(Column.__or__, doubts, F.lit(False))


_typed = partial(field, "_typed")


def _sum(terms: Iterable[Count]) -> Count:
    """The sum of what is not known to be nothing."""
    counts = [count for count in terms if _may_count(count)]
    return reduce(add, counts) if counts else 0


def _may_count(count: Count) -> bool:
    """False for what is known to be nothing."""
    return isinstance(count, Column) or count > 0


def _how_many(flags: Iterable[Column]) -> Count:
    """How many hold, as bits of numbers: each addition in ANSI SQL makes an object that would tell
    of an overflow (measured, of 500,000 flat records: a fiftieth of a run)."""
    bits = [F.shiftleft(flag.cast("bigint"), n % _BITS) for n, flag in enumerate(flags)]
    numbers = [bits[first : first + _BITS] for first in range(0, len(bits), _BITS)]
    return _sum(F.bit_count(reduce(Column.bitwiseOR, number)) for number in numbers)


def _occurs_at_most(sign: str, count: Count) -> Column:
    """True where a sign stands in the text no more often than that: it stands there as often at
    least, so this is as often. Nothing of the text is copied where it is true."""
    raw, more = F.col(RAW), _sum([count, 1])
    before = F.call_function("substring_index", raw, F.lit(sign), F.lit(more))
    return F.octet_length(before) == F.octet_length(raw)


def _bytes() -> Column:
    return F.col(RAW).cast("binary")


def _holds(sign: str, among: Column | None = None) -> Column:
    """True where a sign stands in the text, or among some bytes of it. By bytes: Java goes through
    an array faster than Spark through its text (measured: 0.10 against 0.15 microseconds a record
    of 250 bytes)."""
    return F.contains(_bytes() if among is None else among, F.lit(sign.encode()))


def _without_end() -> Column:
    """The bytes of the text but for the last."""
    return F.substring(_bytes(), F.lit(1), F.octet_length(RAW) - 1)


def _is_named(name: str) -> Column:
    """True where a declared field is in the record, with a value or written as null.

    No text value holds `"name":null`, its quotes would be escaped; a name that ends so does where
    it holds an escaped quote itself.
    """
    null = _holds(f'"{name}":null') | _holds(f'"{name}": null')
    return _typed(name).isNotNull() | (null & ~_holds('\\"'))


def _count(value: Column, kind: DataType) -> tuple[Count, Count]:
    """How many names and closing braces a value that was read had in the text, at least."""
    if isinstance(kind, StructType):
        inner = [(value[f.name], _count(value[f.name], f.dataType)) for f in kind.fields]
        there = _how_many(field.isNotNull() for field, _ in inner)
        names = _sum([there, *(names for _, (names, _) in inner)])
        braces = _sum([1, *(braces for _, (_, braces) in inner)])
    elif isinstance(kind, MapType):
        names, braces = _count_elements(F.map_values(value), kind.valueType)
        names, braces = _sum([F.size(value), names]), _sum([braces, 1])
    elif isinstance(kind, ArrayType):
        names, braces = _count_elements(value, kind.elementType)
    else:
        return 0, 0
    return _where(value.isNotNull(), names), _where(value.isNotNull(), braces)


def _where(condition: Column, count: Count) -> Count:
    """The count, nothing elsewhere."""
    return F.when(condition, count).otherwise(0) if _may_count(count) else 0


def _count_elements(array: Column, kind: DataType) -> tuple[Count, Count]:
    if is_scalar(kind):
        return 0, 0

    def total(part: int) -> Column:
        return F.aggregate(array, F.lit(0), lambda sum_, value: sum_ + _count(value, kind)[part])

    fields = kind.fields if isinstance(kind, StructType) else []
    full = [is_full(array[field.name], field.dataType) for field in fields]
    known = [column for column in full if column is not None]
    if not known or len(known) < len(full):
        return total(0), total(1)
    quick, size = reduce(Column.__and__, known), F.size(array)
    names = F.when(quick, size * len(fields)).otherwise(total(0))
    return names, F.when(quick, size).otherwise(total(1))


def _is_plain_value(source: Records, name: str, kind: DataType) -> Column:
    """False where a value may not be what was written: text that was a number, a number that is
    none, and a time that was one, whose seconds may have wrapped around."""
    value = _typed(name)
    if is_time(source.columns[name]):
        spaced = _holds('": ')  # which most often the first name shows
        quoted = F.when(spaced, _holds(f'"{name}": "')).otherwise(_holds(f'"{name}":"'))
        return value.isNull() | quoted
    if isinstance(kind, StringType):
        # What was no text in the record is written as JSON: an object, a list, a quoted name.
        written = value.startswith('"') | value.startswith("{") | value.startswith("[")
        huge = value.isin("Infinity", "-Infinity") | (written & value.contains("Infinity"))
        return value.isNull() | ~huge
    return F.lit(True)


def _is_plain_by_names(source: Records, kinds: dict[str, DataType]) -> Column:
    """The same by the names themselves, which takes another parse: for records with other
    spellings, or with fields that the values of others look like."""
    raw, names = F.col(RAW), F.json_object_keys(RAW)
    # As many names as declared fields that have a value are those fields' names, each once. A field
    # that is written as null needs the names themselves.
    valued = _how_many(_typed(name).isNotNull() for name in kinds)
    declared = F.array_intersect(names, F.array(*[F.lit(name) for name in kinds]))
    named_once = (F.size(names) == valued) | (F.size(names) == F.size(declared))
    alone = (F.json_array_length(followed_by("")) == 1) & (
        F.json_array_length(followed_by(",0")) == 2
    )
    plain = alone & ~raw.rlike(_HUGE_NUMBER)
    if all(map(is_scalar, kinds.values())):
        # The brace that ends the object is the first one and ends the text: nothing is nested,
        # nothing follows, and values can be asked for one by one.
        values = [_is_plain_value(source, name, kind) for name, kind in kinds.items()]
        flat = F.instr(raw, "}") == F.length(raw)
        plain = F.when(flat, reduce(Column.__and__, values)).otherwise(plain)
    return named_once & plain
