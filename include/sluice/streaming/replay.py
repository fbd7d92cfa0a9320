"""Reads what the finished batches of a step have read once more, as one batch into tables beside
the step's own, and compares the two."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from ..backlog import find_altered, table_version
from ..checkpoint import (
    Checkpoint,
    Rights,
    hold_lease,
    note_step,
    noted_parts,
    open_manifest,
    plan_again,
)
from ..errors import PreflightError, SourceError, SpecError, TransientError
from ..report import UNWATCHED, Counts, Verification
from ..sources import Found
from ..spark.table_setup import locate_target
from ..spark.tables import frame_of
from ..spec import (
    FileSource,
    KafkaSource,
    Mode,
    Pipeline,
    RuleSpec,
    RunRequest,
    SourceKind,
    Step,
    TableSource,
)
from ..spec.definition import changed_parts, digest_parts
from ..spec.rules import ROW_LEVEL
from ..storage import Paths, open_path, remove_tree, spark_folder
from .comparing import differ
from .run import Run
from .step import begin_step, run_step


@dataclass(frozen=True)
class _Done:
    """What a step has done. `batch`: the newest that is finished. `tables`: path of each of its
    tables, `versions`: of those that are there, as that batch left them."""

    batch: int
    tables: dict[str, str]
    versions: dict[str, int]


def verify_by_replay(
    spark: SparkSession, pipeline: Pipeline, step: Step, paths: Paths
) -> Iterator[Verification]:
    """What a step's target, quarantine and late table hold against what its input gives when it is
    read at once: rows as multisets, without the columns that tell the run.

    Raises PreflightError before its first run and for a batch that is not finished, SourceError
    where its input is not there any more, CheckpointBusy beside another one.
    """
    done = _look_at(step, paths, locate_target(spark, step, paths))
    _refuse_unlike(pipeline, step, paths)
    _refuse_gone(step, paths, done)
    place = paths.verification()
    with _clean_place(place):
        again = pipeline.model_copy(update={"steps": [_as_alone(spark, pipeline, step, paths)]})
        there = place.checkpoint(step.name)
        if len(step.streams) > 1:  # the plan counts them in this order
            note_step(there, open_manifest(there), inputs=[*step.streams])
        plan_again(paths.checkpoint(step.name), done.batch, there)
        counts = _run(spark, again, place)
        found = _list_tables(step, place, place.table(step.name))
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
                version=done.versions.get(name, 0),
                **vars(differ(wanted, held, by, pipeline.pii)),
            )


def _list_tables(step: Step, paths: Paths, target: str) -> dict[str, str]:
    quarantine, late = paths.quarantine(step.name), paths.late(step.name)
    return {"target": target, "quarantine": quarantine, "late": late}


def _look_at(step: Step, paths: Paths, target: str) -> _Done:
    """What a step has done, where no batch of it is under way: rows of one that is may be in one
    table and not in another."""
    tables, where = _list_tables(step, paths, target), paths.checkpoint(step.name)
    before = Checkpoint.below(where)
    versions = {name: table_version(path) for name, path in tables.items()}
    after = Checkpoint.below(where)
    if before.open_batch is not None or after.open_batch is not None:
        raise PreflightError(
            "a batch was planned and is not finished, so its rows may be in one table and not in "
            "another",
            where=where,
            do="Wait for the run that is at it. Where none is, it was killed: `sluice run` "
            "finishes the batch",
        )
    if before.newest_commit is None:
        raise PreflightError(
            "the step has not finished a batch, so there is nothing to verify",
            where=where,
            do="Run the pipeline",
        )
    if before.newest_commit != after.newest_commit:
        raise TransientError("a run was at it meanwhile", where=where, do="Verify again")
    there = {name: version for name, version in versions.items() if version is not None}
    return _Done(before.newest_commit, tables, there)


def _refuse_unlike(pipeline: Pipeline, step: Step, paths: Paths) -> None:
    """Raise SpecError for a step of which one batch says nothing, PreflightError for one that
    judges otherwise than it did."""
    checkpoint = paths.checkpoint(step.name)
    if (open_path(spark_folder(checkpoint)) / "state").exists():
        raise SpecError(
            "its query keeps rows in state, and when they leave it hangs on how they were cut into "
            "batches, so that one batch cannot tell",
            where=f"{pipeline.name}.{step.name}",
            do="`sluice torture` compares its table with that of an undisturbed run",
        )
    edited = changed_parts(noted_parts(checkpoint), digest_parts(step, pipeline.folder))
    if edited:
        raise PreflightError(
            f"{' and '.join(edited)} were edited since the last run, so its rows were judged by "
            "what is not there any more",
            where=f"{pipeline.name}.{step.name}",
            do="Verify with the files as they were, or rebuild the table: `sluice reset "
            f"{pipeline.name} --step {step.name} --tables`, and run",
        )


def _refuse_gone(step: Step, paths: Paths, done: _Done) -> None:
    """Raise SourceError for files that were read and are gone, or are not as they were."""
    for number, one in enumerate(step.streams.values()):
        if not isinstance(one.source, FileSource):
            continue
        checkpoint = Checkpoint.below(paths.checkpoint(step.name), number)
        altered = find_altered(one.source, checkpoint, done.batch)
        if altered:
            raise SourceError(
                f"{len(altered):,} of the files that were read are gone, or were changed since, so "
                "that they cannot be read once more",
                where=f"{step.name}: source {one.source.path}",
                value=", ".join(altered[:3]),
                do="Put them back as they were, or verify the steps behind this one",
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


def _run(spark: SparkSession, pipeline: Pipeline, place: Paths) -> Counts:
    """Work off the batch that is planned there."""
    (step,), run_id = pipeline.steps, f"verify-{uuid4().hex[:6]}"
    mode = Mode.of(RunRequest(pipeline=pipeline.name, run_id=run_id))
    with hold_lease(place.lease(step.name), run_id) as lease:
        rights = Rights(run_id, {step.name: lease}, [], time.monotonic() + 10**7)
        run = Run(spark, pipeline, place, mode, run_id, rights, UNWATCHED)
        tally = begin_step(run, step)
        run_step(run, step, tally, Found())
        return sum((entry.batch.counts for entry in tally.finished), Counts())


def _open(spark: SparkSession, path: str, version: int | None = None) -> DataFrame | None:
    """A table as it is, or as of a version; None where it is not there."""
    there = table_version(path) is not None if version is None else version >= 0
    return frame_of(spark, path, version) if there else None
