"""How the table of a step with `groups` follows from its inputs, and the stream that says what is
new in them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import sha256
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from ..backlog import table_version
from ..checkpoint import Checkpoint, noted_parts, plan_nothing
from ..errors import PreflightError
from ..sources import Inputs, Statics, StaticTable
from ..spark.columns import (
    CHANGE,
    DEFECT,
    PARSED,
    RAW,
    RESCUED,
    SOURCE,
    STAGE,
    col,
)
from ..spark.estimates import scanned_bytes
from ..spark.groups import check_groups_kept, mark_input
from ..spark.pruning import length_of
from ..spark.tables import table_bytes
from ..spec import Pipeline, Step, TableSource, Window, group_expressions
from ..spec.definition import changed_parts, digest_parts
from ..storage import Paths
from .redo import choose_time, find_groups, lies_in
from .regroup import Touched, only_groups
from .run import Run
from .transform import query_tables

_SETTINGS = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.decimalOperations.allowPrecisionLoss",
)
"""Settings on which it hangs what a query says."""


@dataclass(frozen=True)
class Refresh:
    """How a step's table follows from its inputs. `tables`: those that are read commit by commit,
    `statics`: as a whole. `query`: digest of what computes it. `where`: the transform, for
    errors. `redo`: range of time whose groups are computed whether they changed or not. `lists`:
    by input, the groups of which its rows belong to a list."""

    step: Step
    folder: Path
    where: str
    tables: Mapping[str, StaticTable]
    statics: Mapping[str, StaticTable]
    query: str
    redo: Window | None = None
    lists: Mapping[str, frozenset[str]] = field(default_factory=dict)

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
        return cls(step, pipeline.folder, where, tables, statics, query)

    @property
    def groups(self) -> Mapping[str, Mapping[str, str]]:
        """By column of the result and input, as SQL."""
        return group_expressions(self.step)

    def named(self, name: str) -> dict[str, str]:
        """How each group follows from a row of an input."""
        return {column: said[name] for column, said in self.groups.items()}

    @property
    def several(self) -> frozenset[str]:
        """The groups of which a row of some input belongs to a list."""
        return frozenset().union(*self.lists.values())

    def listed(self, name: str) -> dict[str, str]:
        """How each group follows from a row of an input, a list of it in all inputs where it is one
        in some."""
        plain = self.several - self.lists.get(name, frozenset())
        named = self.named(name)
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
        """What the query makes of its inputs."""
        return query_tables(inputs, self.folder, self.step.transform or "")

    def compute_some(self, inputs: Mapping[str, DataFrame], touched: Touched) -> DataFrame:
        """What the query makes of the rows of some groups. Of a row that belongs to several it
        makes rows of others as well, which are left out: there they are not complete."""
        made = self.compute(self.narrow(inputs, touched))
        return only_groups(made, touched.rows, touched.few) if self.several else made

    def estimate(self, inputs: Mapping[str, DataFrame], touched: Touched) -> int:
        """Bytes of the inputs' files in which rows of some groups may lie."""
        found = 0
        for name in self.tables:
            rows = inputs[name]
            within = touched.spans.of_columns(self.named(name), rows.schema)
            found += scanned_bytes(rows.where(within))
        return found

    def size(self, session: SparkSession) -> int:
        """Bytes of all files of the inputs that are read commit by commit."""
        return sum(table_bytes(session, table.place) for table in self.tables.values())

    def to_redo(self, inputs: Mapping[str, DataFrame], held: DataFrame) -> DataFrame | None:
        """The groups that are computed whether they changed or not; None where none are. Args:
        held: rows of the table."""
        if self.redo is None:
            return None
        time = choose_time(self.groups, held.schema, self.where)
        length = next(filter(None, map(length_of, self.groups[time].values())), "")
        listed = {name: self.listed(name) for name in self.tables}
        return find_groups(listed, inputs, held, lies_in(time, length, self.redo))

    def narrow(self, inputs: Mapping[str, DataFrame], touched: Touched) -> dict[str, DataFrame]:
        """Those rows of the inputs that belong to some groups, and where a row belongs to several
        perhaps some more."""
        found, spans = dict(inputs), touched.spans
        plain = [column for column in touched.rows.columns if column not in self.several]
        groups = touched.rows.select(*[col(c).alias(f"_{c}") for c in plain])
        for name in self.tables:
            rows, said = inputs[name], self.listed(name)
            within = rows.where(spans.of_columns(self.named(name), rows.schema))
            for column in self.several:
                within = within.where(spans.of_list(column, said[column]))
            if plain:
                marked = within.withColumns(
                    {f"_{column}": F.expr(said[column]) for column in plain}
                )
                within = only_groups(marked, groups, touched.few).drop(*groups.columns)
            found[name] = within
        return found


def open_commits(run: Run, step: Step, inputs: Inputs) -> tuple[DataFrame, Refresh]:
    """The stream of an input's new rows, each with its group and with empty columns of the result;
    and how the table is computed.

    Raises SpecError for a query that cannot be computed group by group.
    """
    streams = inputs.open(run.spark)
    refresh = Refresh.of(run.spark, run.pipeline, step, run.paths, inputs.statics)
    frames = refresh.read(run.spark, {})
    marked = {name: mark_input(frames[name], name) for name in refresh.tables}
    result = refresh.compute({**frames, **marked})
    lists = check_groups_kept(result, marked, refresh.groups, refresh.where)
    refresh = replace(refresh, lists=lists)
    redo = run.mode.redo
    if redo is not None:
        refresh = replace(refresh, redo=redo.window)
        choose_time(refresh.groups, result.schema, refresh.where)
    _plan_asked(run, step)  # only now: what is refused leaves no batch behind
    records = (as_records(refresh, name, streams[name], result.schema) for name in refresh.tables)
    return reduce(DataFrame.unionByName, records), refresh


def _plan_asked(run: Run, step: Step) -> None:
    """Plan a batch where a person asked for one, or edited the step since a report told of it, so
    that it is computed also where nothing is new in the inputs. Raises PreflightError where there
    is nothing yet that could be computed again."""
    place, asked = run.checkpoint(step), run.mode.redo is not None
    checkpoint = Checkpoint.below(place)
    if checkpoint.newest_commit is None and asked:
        raise PreflightError(
            "no batch of the step is finished, so there is nothing to compute again",
            where=run.where(step),
            do="Run the pipeline: it computes all of it",
        )
    if checkpoint.newest_commit is None or checkpoint.open_batch is not None:
        return
    if asked or changed_parts(noted_parts(place), digest_parts(step, run.pipeline.folder)):
        run.rights.check(step.name)
        plan_nothing(place)


def _digest_query(spark: SparkSession, folder: Path, step: Step) -> str:
    """Digest of what a table of groups is computed by: another one computes it anew."""
    parts = sorted(digest_parts(step, folder).items())
    said = repr((parts, [spark.conf.get(name) for name in _SETTINGS]))
    return sha256(said.encode()).hexdigest()[:16]


def as_records(refresh: Refresh, name: str, rows: DataFrame, columns: StructType) -> DataFrame:
    """Rows of an input as records: of which input they are and of which group, and the columns of
    the result, empty."""
    said = [F.expr(text).alias(column) for column, text in refresh.listed(name).items()]
    change = F.struct(F.lit(name).alias("input"), F.struct(*said).alias("group"))
    nothing = [F.lit(None).cast(f.dataType).alias(f.name) for f in columns.fields]
    return with_origin(rows.select(change.alias(CHANGE), *nothing), PARSED)


def with_origin(rows: DataFrame, stage: str) -> DataFrame:
    """Rows with the engine's columns: none of them comes from one record."""
    nothing = F.lit(None).cast("string")
    kept = dict.fromkeys((RAW, DEFECT, RESCUED, SOURCE), nothing)
    return rows.withColumns({**kept, STAGE: F.lit(stage)})
