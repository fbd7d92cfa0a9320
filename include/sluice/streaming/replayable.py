"""Whether what a step has read can be read once more, and what it has made of it."""

from dataclasses import dataclass

from ..backlog import find_altered, table_version
from ..checkpoint import (
    Checkpoint,
    Stretch,
    noted_parts,
    open_manifest,
    read_stretches,
    without_watermark,
)
from ..errors import PreflightError, SourceError, TransientError
from ..report import list_reports
from ..sources import StaticTopic, find_statics
from ..spec import FileSource, KafkaSource, Pipeline, Step
from ..spec.definition import changed_parts, digest_parts
from ..spec.verifiable import kept_apart
from ..storage import Paths, open_path, spark_folder

_OWN = ("applyInPandasWithState", "transformWithState")
"""How what a manifest says of a state begins that the user's own code keeps."""


@dataclass(frozen=True)
class Done:
    """What a step has done. `batch`: the newest that is finished. `tables`: path of each of its
    tables, `versions`: of those that are there, as that batch left them."""

    batch: int
    tables: dict[str, str]
    versions: dict[str, int]


def list_tables(step: Step, paths: Paths, target: str) -> dict[str, str]:
    quarantine, late = paths.quarantine(step.name), paths.late(step.name)
    return {"target": target, "quarantine": quarantine, "late": late}


def look_at(step: Step, paths: Paths, target: str) -> Done:
    """What a step has done, where no batch of it is under way: rows of one that is may be in one
    table and not in another."""
    tables, where = list_tables(step, paths, target), paths.checkpoint(step.name)
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
    return Done(before.newest_commit, tables, there)


def keeps_state(step: Step, paths: Paths) -> bool:
    """True where a step's query keeps rows in state."""
    return (open_path(spark_folder(paths.checkpoint(step.name))) / "state").exists()


def refuse_edited(pipeline: Pipeline, step: Step, paths: Paths) -> None:
    """Raise PreflightError for a step that judges otherwise than it did."""
    edited = changed_parts(
        noted_parts(paths.checkpoint(step.name)), digest_parts(step, pipeline.folder)
    )
    if edited:
        raise PreflightError(
            f"{' and '.join(edited)} were edited since the last run, so its rows were judged by "
            "what is not there any more",
            where=f"{pipeline.name}.{step.name}",
            do="Verify with the files as they were, or rebuild the table: `sluice reset "
            f"{pipeline.name} --step {step.name} --tables`, and run",
        )


def list_stretches(pipeline: Pipeline, step: Step, paths: Paths, done: Done) -> list[Stretch]:
    """The batches in which what a step has read is read once more: one where that gives the same
    rows, else as few as give them, and behind a state that one batch makes again another, in which
    nothing is new.

    Raises PreflightError where Spark has removed plans of batches that nobody noted.
    """
    checkpoint, apart = paths.checkpoint(step.name), kept_apart(step)
    stateful = keeps_state(step, paths)
    if stateful and (apart or _hangs_on_batches(step, paths)):
        apart |= {"state"}
    if apart:
        found = read_stretches(checkpoint, done.batch, apart)
        if not found:
            raise PreflightError(
                "its batches must be read one by one, or with static inputs as they were, and the "
                "first of them were made before Sluice noted what that takes",
                where=f"{pipeline.name}.{step.name}",
                do=f"Rebuild the table: `sluice reset {pipeline.name} --step {step.name} "
                "--tables`, and run. `sluice torture` compares it with that of an undisturbed run",
            )
        return found
    newest = Checkpoint.below(checkpoint).offsets[done.batch].read_text(encoding="utf-8")
    whole = Stretch(first=0, last=done.batch, plan=without_watermark(newest))
    end = Stretch(first=done.batch, last=done.batch, plan=newest)
    return [whole, end] if stateful else [whole]  # what its watermark has closed leaves the state


def _hangs_on_batches(step: Step, paths: Paths) -> bool:
    """Whether a step's state may not be what one batch makes of the same rows: the user's own code
    keeps it, or a row came late, which none does in one batch."""
    manifest = open_manifest(paths.checkpoint(step.name))
    if manifest.variables or any(what.startswith(_OWN) for what in manifest.state or []):
        return True
    home = f"{paths.home(step.name)}/{manifest.generation}/"
    told = [one for report in list_reports(paths.reports()) for one in report.steps]
    return any(
        batch.counts.late for one in told for batch in one.batches if batch.key.startswith(home)
    )


def refuse_gone(pipeline: Pipeline, step: Step, paths: Paths, done: Done) -> None:
    """Raise SourceError for files that were read and are gone, or are not as they were, and for a
    static topic that went on since."""
    checkpoint = paths.checkpoint(step.name)
    for number, one in enumerate(step.streams.values()):
        if not isinstance(one.source, FileSource):
            continue
        altered = find_altered(one.source, Checkpoint.below(checkpoint, number), done.batch)
        if altered:
            raise SourceError(
                f"{len(altered):,} of the files that were read are gone, or were changed since, so "
                "that they cannot be read once more",
                where=f"{step.name}: source {one.source.path}",
                value=", ".join(altered[:3]),
                do="Put them back as they were, or verify the steps behind this one",
            )
    if not any(isinstance(one.source, KafkaSource) for one in step.statics.values()):
        return
    read = read_stretches(checkpoint, done.batch, kept_apart(step))
    for name, static in find_statics(pipeline, step, paths, asks=True).items():
        if isinstance(static, StaticTopic) and any(
            one.statics[name] != static.position for one in read
        ):
            raise SourceError(
                f"static input {name} has gone on since, and compaction may have removed what was "
                "read of it",
                where=f"{step.name}: inputs.{name}",
                do="To have it verified, make the table of what the topic holds now: `sluice "
                f"reset {pipeline.name} --step {step.name} --tables`, and run",
            )
