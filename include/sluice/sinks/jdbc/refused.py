"""Which row PostgreSQL refused, by its keys."""

import re
from collections.abc import Collection, Iterable

_ROW = re.compile(r"Failing row contains \((.*)\)\.", re.DOTALL)
_KEY = re.compile(r"Key \((.*?)\)=\((.*)\) ", re.DOTALL)


def describe_row(
    detail: str, columns: Iterable[str], keys: Collection[str], hidden: Collection[str]
) -> str:
    """The keys of a refused row, as in "id = o1, day = 3"; empty where they cannot be told.

    Args: detail: PostgreSQL's DETAIL, which holds all values of the row, in the order of the
    table's columns, or those of a unique index. hidden: columns whose values are never shown.
    """
    row, key = _ROW.search(detail), _KEY.search(detail)
    if row:
        names, values = list(columns), row[1].split(", ")
    elif key:
        names, values = [name.strip('"') for name in key[1].split(", ")], key[2].split(", ")
    else:
        return ""
    if len(names) != len(values):  # a value holds what separates them
        return ""
    pairs = zip(names, values, strict=True)
    told = {name: "…" if name in hidden else value for name, value in pairs}
    return ", ".join(f"{name} = {told[name]}" for name in keys if name in told)
