"""How the table of a step with `groups` follows from its inputs, and the stream that says what is
new in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ..backlog import table_version
from ..sources import Statics, StaticTable
from ..spark.columns import (
    col,
)
from ..spark.estimates import scanned_bytes
from ..spark.grouped_inputs import Through
from ..spark.groups import carry_groups, mark_input
from ..spark.pruning import length_of
from ..spark.tables import read_shape
from ..spark.windows import spell_out
from ..spec import GROUP_PREFIX, Pipeline, Step, TableSource, Window, group_expressions
from ..spec.definition import digest_parts
from ..storage import Paths
from .redo import choose_time, find_groups, lies_in
from .regroup import Touched, only_groups
from .transform import query_tables

_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.decimalOperations.allowPrecisionLoss",
)
"""Settings on which it hangs what a query says."""


_GROUP = "_group of a row: "
"""Before the name of a column that is there while rows are chosen: no table has such a one."""


@dataclass(frozen=True)
class Refresh:
    """How a step's table follows from its inputs. `tables`: those that are read commit by commit,
    `statics`: as a whole. `query`: digest of what computes it. `where`: the transform, for
    errors. `redo`: range of time whose groups are computed whether they changed or not. `lists`:
    by input, the groups of which its rows belong to a list. `through`: the tables whose rows belong
    to groups through those of others."""

    step: Step
    folder: Path
    where: str
    tables: Mapping[str, StaticTable]
    statics: Mapping[str, StaticTable]
    query: str
    redo: Window | None = None
    lists: Mapping[str, frozenset[str]] = field(default_factory=dict)
    through: Mapping[str, Through] = field(default_factory=dict)

    @classmethod
    def of(
        cls, spark: SparkSession, pipeline: Pipeline, step: Step, paths: Paths, read: Statics
    ) -> "Refresh":
        """How a step's table follows from its inputs as they are now. Args: read: those that are
        read as a whole, at the versions that reports tell."""
        tables = {
            name: StaticTable.of(one.source, pipeline.source_path(one.source, paths))
            for name, one in step.streams.items()
            if isinstance(one.source, TableSource)
        }
        statics = {name: one for name, one in read.items() if isinstance(one, StaticTable)}
        where = f"{pipeline.name}.{step.name}: transform {step.transform}"
        query = _digest_query(spark, pipeline.folder, step)
        through = {
            name: Through(one.key, one.through) for name, one in step.streams.items() if one.through
        }
        return cls(step, pipeline.folder, where, tables, statics, query, through=through)

    @property
    def groups(self) -> Mapping[str, Mapping[str, str]]:
        """By column of the result and input, as SQL."""
        return group_expressions(self.step)

    @property
    def grouped(self) -> list[str]:
        """The inputs whose rows say themselves to which groups they belong."""
        return [name for name in self.tables if name not in self.through]

    def named(self, name: str) -> dict[str, str]:
        """How each group follows from a row of an input, as the file says it."""
        return {column: said[name] for column, said in self.groups.items()}

    def computed(self, name: str) -> dict[str, str]:
        """The same, as it is computed of a row: `window` is no function of one."""
        return {column: spell_out(said) for column, said in self.named(name).items()}

    @property
    def several(self) -> frozenset[str]:
        """The groups of which a row of some input belongs to a list."""
        return frozenset().union(*self.lists.values())

    def listed(self, name: str) -> dict[str, str]:
        """How each group follows from a row of an input, a list of it in all inputs where it is one
        in some."""
        plain = self.several - self.lists.get(name, frozenset())
        named = self.computed(name)
        return {one: f"array({said})" if one in plain else said for one, said in named.items()}

    def read(self, session: SparkSession, versions: Mapping[str, int]) -> dict[str, DataFrame]:
        """Each input at a version."""
        every = {**self.tables, **self.statics}
        return {n: table.at(versions.get(n)).read(session, n) for n, table in every.items()}

    def newest(self) -> dict[str, int]:
        """The newest version of each input."""
        every = {**self.tables, **self.statics}
        found = {name: table_version(table.place) for name, table in every.items()}
        return {name: version for name, version in found.items() if version is not None}

    def compute(self, inputs: Mapping[str, DataFrame]) -> DataFrame:
        """What the query makes of its inputs, and the groups that it does not select."""
        reference = self.step.transform or ""
        kept = {name: said for name, said in self.groups.items() if name.startswith(GROUP_PREFIX)}
        if not kept:
            return query_tables(inputs, self.folder, reference)
        marked = {name: mark_input(inputs[name], name) for name in self.grouped}
        made = query_tables({**inputs, **marked}, self.folder, reference)
        return carry_groups(made, marked, kept, self.where)

    def compute_some(self, inputs: Mapping[str, DataFrame], touched: Touched) -> DataFrame:
        """What the query makes of the rows of some groups. Of a row that belongs to several it
        makes rows of others as well, which are left out: there they are not complete."""
        made = self.compute(self.narrow(inputs, touched))
        return only_groups(made, touched.rows, touched.few) if self.several else made

    def estimate(self, inputs: Mapping[str, DataFrame], touched: Touched) -> int:
        """Bytes of the inputs' files in which rows of some groups may lie."""
        found = 0
        for name in self.grouped:
            rows = inputs[name]
            within = touched.spans.of_columns(self.named(name), rows.schema)
            found += scanned_bytes(rows.where(within))
        return found

    def size(self, session: SparkSession) -> int:
        """Bytes of all files of the inputs of which a batch reads some groups."""
        return sum(read_shape(session, self.tables[name].place).size for name in self.grouped)

    def to_redo(self, inputs: Mapping[str, DataFrame], held: DataFrame) -> DataFrame | None:
        """The groups that are computed whether they changed or not; None where none are. Args:
        held: rows of the table."""
        if self.redo is None:
            return None
        time = choose_time(self.groups, held.schema, self.where)
        length = next(filter(None, map(length_of, self.groups[time].values())), "")
        listed = {name: self.listed(name) for name in self.grouped}
        return find_groups(listed, inputs, held, lies_in(time, length, self.redo))

    def narrow(self, inputs: Mapping[str, DataFrame], touched: Touched) -> dict[str, DataFrame]:
        """Those rows of the inputs that belong to some groups, and where a row belongs to several
        perhaps some more."""
        found, spans = dict(inputs), touched.spans
        plain = [column for column in touched.rows.columns if column not in self.several]
        groups = touched.rows.select(*[col(c).alias(f"{_GROUP}{c}") for c in plain])
        for name in self.grouped:
            rows, said = inputs[name], self.listed(name)
            within = rows.where(spans.of_columns(self.named(name), rows.schema))
            for column in self.several:
                within = within.where(spans.of_list(column, said[column]))
            if plain:
                marked = within.withColumns(
                    {f"{_GROUP}{column}": F.expr(said[column]) for column in plain}
                )
                within = only_groups(marked, groups, touched.few).drop(*groups.columns)
            found[name] = within
        return found


def _digest_query(spark: SparkSession, folder: Path, step: Step) -> str:
    """Digest of what a table of groups is computed by: another one computes it anew."""
    parts = sorted(digest_parts(step, folder).items())
    said = repr((parts, [spark.conf.get(name) for name in _SETTINGS]))
    return sha256(said.encode()).hexdigest()[:16]
