"""The streams of a step that has several inputs: each is judged before its rows meet those of the
others, and its records stand beside what is made of them.

Out: the columns that the step makes, and `_raw`, `_defect`, `_rescued`, `_source`, `_stage`,
`_input`; of records also `_event_time`, `_reasons` and `_checks`, by what their input asks.
"""

from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType, TimestampType

from ..errors import SpecError
from ..quality import rule_name
from ..quality.rules import RowRule, compile_rules
from ..sources import Inputs
from ..spark.columns import (
    CHECKS,
    DEFECT,
    ENTERED,
    FILTERED,
    INPUT,
    PARSED,
    RAW,
    REASONS,
    REJECTED,
    RESCUED,
    SOURCE,
    STAGE,
    TIME,
    col,
    source_text,
)
from ..spark.watermarks import declare_watermark
from ..spec import Input, Step
from .classify import judge, mark_time
from .run import Run
from .transform import View, apply_to_views, apply_transform, business_columns
from .verdicts import is_refused

_RECORD = (RAW, DEFECT, RESCUED, SOURCE, STAGE, TIME, REASONS, CHECKS)


@dataclass(frozen=True)
class Judged:
    """An input whose records have their verdict. `columns`: its own."""

    spec: Input
    records: DataFrame
    columns: StructType
    rules: list[RowRule]

    @property
    def beside(self) -> DataFrame:
        """Every record with its fate, to be counted or quarantined: of those that take part no
        more than that they do."""
        refused, content = is_refused(), F.to_json(F.struct(*map(col, self.columns.names)))
        stage = (
            F.when(F.col(DEFECT).isNotNull(), F.lit(ENTERED))
            .when(F.col(STAGE) == FILTERED, F.lit(FILTERED))
            .when(refused, F.lit(REJECTED))
            .otherwise(F.lit(PARSED))
        )
        told = {
            RAW: F.when(refused, F.coalesce(F.col(RAW).cast("string"), content)),
            SOURCE: source_text(self.records.schema[SOURCE].dataType),
            STAGE: stage,
        }
        kept = [told.get(name, F.col(name)).alias(name) for name in _RECORD]
        return self.records.select(*kept, F.lit(self.spec.name).alias(INPUT))

    def view(self, alone: bool) -> View:
        """The rows that take part, with their watermark. Args: alone: no other stream is there, so
        that each row that is made has one origin."""
        good = F.col(DEFECT).isNull() & (F.col(STAGE) == ENTERED) & (F.size(REASONS) == 0)
        rows = self.records.where(good).drop(STAGE, TIME, REASONS, CHECKS)
        rows = rows.withColumn(SOURCE, source_text(self.records.schema[SOURCE].dataType))
        time, delay = self.spec.event_time, self.spec.watermark
        if time is not None and delay is not None:
            if not isinstance(self.columns[time.column].dataType, TimestampType):
                raise SpecError(
                    "a watermark needs a column of type timestamp",
                    where=f"inputs.{self.spec.name}: event_time.column",
                    value=f"{time.column} {self.columns[time.column].dataType.simpleString()}",
                    do="Declare it so in the schema, or cast it in the input's `transform`",
                )
            rows = declare_watermark(rows, time.column, delay, self.spec.name)
        return View(rows, alone)


def join_inputs(run: Run, step: Step, inputs: Inputs) -> tuple[DataFrame, list[RowRule]]:
    """The rows that a step makes of its inputs, beside the records of each; and the rules of its
    inputs, in the order of their verdicts.

    Raises SpecError and what opening the inputs raises.
    """
    frames, judged = inputs.open(run.spark), []
    rules: list[RowRule] = []
    room = sum(len(one.rules) for one in step.inputs.values()) + len(step.rules)
    for name, one in step.streams.items():
        found = _judge(run, step, one, frames[name], (len(rules), room))
        rules += found.rules
        judged.append(found)
    alone = len(judged) == 1
    views = {found.spec.name: found.view(alone) for found in judged}
    for name, table in inputs.statics.items():
        views[name] = View(table.read(run.spark, name), alone=False, static=True)
    rows = apply_to_views(views, run.pipeline.folder, step.transform or "")
    # Records first: Spark numbers its sources as it meets them in the plan.
    parts = [*(found.beside for found in judged), rows]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts), rules


def _judge(run: Run, step: Step, one: Input, records: DataFrame, place: tuple[int, int]) -> Judged:
    """Rules are evaluated, and the event time is trusted, before the rows meet others."""
    folder, where = run.pipeline.folder, f"{run.where(step)}: inputs.{one.name}"
    frame = apply_transform(records, folder, one.transform, row_by_row=where)
    columns = business_columns(frame)
    compiled, table = compile_rules(one.rules, {f.name: f.dataType for f in columns.fields})
    if table:
        raise SpecError(
            "only Great Expectations can evaluate this rule, on a table, and an input has none",
            where=f"{where}: rule {rule_name(table[0])}",
            value=table[0].kwargs,
            do="Write it under the step's `rules`, or a rule that looks at single rows",
        )
    named = [replace(rule, name=f"{one.name}: {rule.name}", input=one.name) for rule in compiled]
    frame = judge(mark_time(frame, one, columns), one, columns, named, place)
    return Judged(one, frame, columns, named)
