"""The inputs of a query with groups, and how a row of each is told to belong to some."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from py4j.java_gateway import JavaObject
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..errors import SpecError
from .fault import sql_message
from .forms import id_of
from .lists import cut_windows, is_list_of
from .plans import analyzed_plan, holds, items, kind
from .unfit import why_unrepeatable
from .windows import spell_out

_ADVICE = "Make it of columns of the input: `date(at)`"


@dataclass(frozen=True)
class Through:
    """How rows of an input belong to groups through those of others: a row does to the groups of
    the rows that it is joined to, which are those with its key."""

    key: Sequence[str]
    """SQL over a row of it."""
    others: Mapping[str, Sequence[str]]
    """Name of another input -> SQL over a row of that, equal to the key one by one."""


@dataclass(frozen=True)
class Input:
    """An input of which each row belongs to groups, or whose rows do through those of others."""

    columns: dict[int, int]
    """Id of a column of its frame that the expressions are made of -> its place, by which it is
    found in a plan, where it has another id."""
    groups: dict[str, JavaObject]
    """Group -> its expression over these columns. Of rows that belong to groups through others:
    what their key is called, and the key."""
    windows: dict[str, JavaObject] = field(default_factory=dict)
    """Group that is a window of time -> the same as Spark's own operator for it has it."""
    keys: dict[str, JavaObject] = field(default_factory=dict)
    """Name of an input that belongs to groups through this one -> the key of its rows."""
    through: str = ""
    """Its own name, where its rows belong to groups through others."""


def resolve_inputs(
    inputs: Mapping[str, DataFrame],
    groups: Mapping[str, Mapping[str, str]],
    through: Mapping[str, Through],
    where: str,
) -> dict[str, Input]:
    """The inputs by name. Args: as of `check_groups_kept`.

    Raises SpecError for an expression that is not made of one row, and for types that differ.
    """
    named = {name: frame for name, frame in inputs.items() if name not in through}
    by = {name: _resolve_groups(name, frame, groups, where) for name, frame in named.items()}
    for group in groups:
        place = f"{where}, groups.{group}"
        _check_alike({name: by[name][group] for name in named}, place, "group")
    keys: dict[str, dict[str, JavaObject]] = {name: {} for name in named}
    found = {}
    for name, meant in through.items():
        place = f"{where}, inputs.{name}"
        own = _resolve_key(inputs[name], meant.key, f"{place}.key")
        for other, texts in meant.others.items():
            at = f"{place}.through.{other}"
            keys[other][name] = _resolve_key(named[other], texts, at)
            _check_alike({name: own, other: keys[other][name]}, at, "key")
        columns = _place_columns(inputs[name], [own])
        found[name] = Input(columns, {", ".join(meant.key): own}, through=name)
    for name, frame in named.items():
        columns = _place_columns(frame, [*by[name].values(), *keys[name].values()])
        sql = {group: said[name] for group, said in groups.items()}
        windows = _find_windows(frame, sql, by[name], where)
        found[name] = Input(columns, by[name], windows, keys[name])
    return found


def _find_windows(
    frame: DataFrame, said: Mapping[str, str], resolved: Mapping[str, JavaObject], where: str
) -> dict[str, JavaObject]:
    """The groups of an input that are windows, as Spark has them. Args: said: their SQL. resolved:
    what that means for one row.

    Raises SpecError for one that Spark refuses, and where it has another type.
    """
    found = {}
    for group, text in said.items():
        if spell_out(text) == text:
            continue
        try:
            found[group] = cut_windows(frame, text)
        except PySparkException as error:
            raise _uncomputed(error, f"{where}, groups.{group}", text) from None
        if found[group].dataType().sql() != resolved[group].dataType().sql():
            raise SpecError(
                "the group is a window of times without a zone, of which nothing is known",
                where=f"{where}, groups.{group}",
                value=text,
                do="Write `date_trunc('hour', at)` here and in the query",
            )
    return found


def _resolve_groups(
    name: str, frame: DataFrame, groups: Mapping[str, Mapping[str, str]], where: str
) -> dict[str, JavaObject]:
    """The groups of an input."""
    for group, texts in groups.items():
        if name not in texts:
            raise SpecError(
                f"nothing says how the group follows from a row of input `{name}`",
                where=f"{where}, groups.{group}",
                do=f"Write `{name}: <SQL expression over its columns>` there",
            )
    return {
        g: _resolve(frame, spell_out(said[name]), f"{where}, groups.{g}.{name}")
        for g, said in groups.items()
    }


def _resolve_key(frame: DataFrame, texts: Sequence[str], where: str) -> JavaObject:
    """A key as one expression, which is equal where its parts are."""
    parts = [_resolve(frame, text, where, "key") for text in texts]
    if len(parts) == 1:
        return parts[0]
    named = (f"'{n}', ({text})" for n, text in enumerate(texts))
    return _resolve(frame, f"named_struct({', '.join(named)})", where, "key")


def _check_alike(expressions: Mapping[str, JavaObject], where: str, what: str) -> None:
    """Raise SpecError where inputs give values of several types, which never are equal, unless one
    is a list of the other."""
    (first, one), *others = expressions.items()
    for name, other in others:
        types = [one.dataType().sql(), other.dataType().sql()]
        if types[0] != types[1] and not is_list_of(*types) and not is_list_of(*types[::-1]):
            raise SpecError(
                f"the {what} is of type {types[0]} in input `{first}` and of type {types[1]} in "
                f"`{name}`",
                where=where,
                value=other.sql(),
                do=f"Cast one of them, so that equal {what}s are equal values",
            )


def _place_columns(frame: DataFrame, expressions: Iterable[JavaObject]) -> dict[int, int]:
    """The id of each column that some expressions name, and its place in the frame."""
    used = {id_of(a) for one in expressions for a in items(one.references().toSeq())}
    ids = map(id_of, items(analyzed_plan(frame).output()))
    return {known: place for place, known in enumerate(ids) if known in used}


def _resolve(frame: DataFrame, text: str, where: str, what: str = "group") -> JavaObject:
    """The expression that gives a row's group, or key."""
    spark = frame.sparkSession
    try:
        plan = analyzed_plan(frame.select(F.expr(text)))
    except PySparkException as error:
        raise _uncomputed(error, where, text, what) from None
    made = items(plan.projectList()) if kind(plan) == "Project" else []
    of_rows = len(made) == 1 and plan.child().equals(analyzed_plan(frame))
    if not of_rows or made[0].references().isEmpty() or holds(spark, made[0], "PLAN_EXPRESSION"):
        said = f"the {what} is not made of the columns of one row"
        raise SpecError(said, where=where, value=text, do=_ADVICE)
    if (why := why_unrepeatable(spark, made[0])) is not None:
        raise SpecError(why[0], where=where, value=text, do=why[1])
    return made[0].child() if kind(made[0]) == "Alias" else made[0]


def _uncomputed(error: PySparkException, where: str, text: str, what: str = "group") -> SpecError:
    said = f"the {what} cannot be computed: {sql_message(error)}"
    return SpecError(said, where=where, value=text, do=_ADVICE)
