"""Reads what the finished batches of a step have read once more, in one batch or as few as it
takes, into tables beside the step's own, and compares the two."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from ..backlog import table_version
from ..checkpoint import (
    Rights,
    Stretch,
    forget,
    hold_lease,
    note_step,
    open_manifest,
    plan_again,
)
from ..errors import SourceError
from ..report import UNWATCHED, Counts, Verification
from ..sources import Found
from ..spark.table_setup import locate_target
from ..spark.tables import frame_of
from ..spec import (
    KafkaSource,
    Mode,
    Pipeline,
    RuleSpec,
    RunRequest,
    SourceKind,
    Step,
    TableSource,
)
from ..spec.rules import ROW_LEVEL
from ..storage import Paths, remove_tree
from .comparing import differ
from .replayable import list_stretches, list_tables, look_at, refuse_edited, refuse_gone
from .run import Run
from .step import begin_step, run_step


def verify_by_replay(
    spark: SparkSession, pipeline: Pipeline, step: Step, paths: Paths
) -> Iterator[Verification]:
    """What a step's target, quarantine and late table hold against what its input gives when it is
    read once more: rows as multisets, without the columns that tell the run.

    Raises PreflightError before its first run and for a batch that is not finished, SourceError
    where its input is not there any more, CheckpointBusy beside another one.
    """
    done = look_at(step, paths, locate_target(spark, step, paths))
    refuse_edited(pipeline, step, paths)
    refuse_gone(pipeline, step, paths, done)
    stretches = list_stretches(pipeline, step, paths, done)
    place = paths.verification()
    with _clean_place(place):
        again = pipeline.model_copy(update={"steps": [_as_alone(spark, pipeline, step, paths)]})
        there = place.checkpoint(step.name)
        if len(step.streams) > 1:  # the plan counts them in this order
            note_step(there, open_manifest(there), inputs=[*step.streams])
        counts = Counts()
        for number, stretch in enumerate(stretches):
            plan_again(paths.checkpoint(step.name), there, number, stretch.plan)
            counts += _run(spark, again, place, stretch)
        found = list_tables(step, place, place.table(step.name))
        for name, path in done.tables.items():
            wanted, held = (
                _open(spark, found[name]),
                _open(spark, path, done.versions.get(name, -1)),
            )
            if wanted is None and held is None:
                continue
            by = step.key_names if name == "target" else ()
            yield Verification(
                step=step.name,
                table=name,
                read=counts.line if name == "target" else "",
                batches=len({one.last for one in stretches}),
                version=done.versions.get(name, 0),
                **vars(differ(wanted, held, by, pipeline.pii)),
            )


@contextmanager
def _clean_place(place: Paths) -> Iterator[None]:
    """A place that holds nothing, before and after."""
    with hold_lease(f"{place.root}/lease", "verify"):
        _remove(place)
        try:
            yield
        finally:
            _remove(place)


def _remove(place: Paths) -> None:
    for folder in ("tables", "checkpoints", "positions"):
        remove_tree(f"{place.root}/{folder}")


def _as_alone(spark: SparkSession, pipeline: Pipeline, step: Step, paths: Paths) -> Step:
    """The step as it reads the same inputs from elsewhere, once, and writes its tables only: what
    judges a batch as a whole would judge another batch here."""

    def locate(source: TableSource) -> str:
        before = [one for one in pipeline.steps if one.name == source.step]
        return locate_target(spark, before[0], paths) if before else source.place(paths)

    def fix(source: SourceKind) -> SourceKind:
        if isinstance(source, TableSource) and source.name is None:
            return source.model_copy(update={"step": None, "path": locate(source)})
        told = {"max_malformed": None} if source.malformed_limit is not None else {}
        # What expired would else be missing without a word.
        lossless = {"fail_on_data_loss": True} if isinstance(source, KafkaSource) else {}
        return source.model_copy(update={**told, **lossless})

    target, inputs = step.target, dict(step.inputs)
    for name, one in inputs.items():
        fixed = {"source": fix(one.source), "rules": _only_of_rows(one.rules)}
        inputs[name] = one.model_copy(update=fixed)
    kept = target.model_copy(update={"table": None, "name": None}) if target else None
    return step.model_copy(
        update={
            "source": fix(step.source) if step.source is not None else None,
            "inputs": inputs,
            "rules": _only_of_rows(step.rules),
            "sinks": [kept] if kept else [],
            "trigger": "once",
        }
    )


def _only_of_rows(rules: list[RuleSpec]) -> list[RuleSpec]:
    """The rules that decide the fate of a row, or are told with it; none stops a batch."""
    return [
        rule.model_copy(update={"on_fail": "warn"}) if rule.on_fail == "stop" else rule
        for rule in rules
        if rule.type in ROW_LEVEL
    ]


def _run(spark: SparkSession, pipeline: Pipeline, place: Paths, stretch: Stretch) -> Counts:
    """Work off the batch that is planned there, with static inputs as they were."""
    (step,), run_id = pipeline.steps, f"verify-{uuid4().hex[:6]}"
    mode = Mode.of(RunRequest(pipeline=pipeline.name, run_id=run_id))
    with hold_lease(place.lease(step.name), run_id) as lease:
        rights = Rights(run_id, {step.name: lease}, [], time.monotonic() + 10**7)
        run = Run(spark, pipeline, place, mode, run_id, rights, UNWATCHED)
        tally = begin_step(run, step)
        try:
            run_step(run, step, tally, Found(pinned=stretch.statics))
        except SourceError as error:
            raise SourceError(
                f"what was read cannot be read once more: {error.what}",
                where=error.where,
                value=error.value,
                do="Nothing is wrong with the step by that. Let VACUUM and the cleaning of logs "
                "keep what is to be verified",
            ) from error
        forget(tally.checkpoint, tally.finished)  # no report will tell of them
        return sum((entry.batch.counts for entry in tally.finished), Counts())


def _open(spark: SparkSession, path: str, version: int | None = None) -> DataFrame | None:
    """A table as it is, or as of a version; None where it is not there."""
    there = table_version(path) is not None if version is None else version >= 0
    return frame_of(spark, path, version) if there else None
