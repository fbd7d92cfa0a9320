"""Whether what a step has read can be read once more, and what it has made of it."""

from dataclasses import dataclass

from ..backlog import find_altered, table_version
from ..checkpoint import Checkpoint, noted_parts, open_manifest
from ..errors import PreflightError, SourceError, SpecError, TransientError
from ..report import list_reports
from ..spec import FileSource, Pipeline, Step
from ..spec.definition import changed_parts, digest_parts
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


def refuse_unlike(pipeline: Pipeline, step: Step, paths: Paths) -> None:
    """Raise SpecError for a step of which one batch says nothing, PreflightError for one that
    judges otherwise than it did."""
    checkpoint, where = paths.checkpoint(step.name), f"{pipeline.name}.{step.name}"
    edited = changed_parts(noted_parts(checkpoint), digest_parts(step, pipeline.folder))
    if edited:
        raise PreflightError(
            f"{' and '.join(edited)} were edited since the last run, so its rows were judged by "
            "what is not there any more",
            where=where,
            do="Verify with the files as they were, or rebuild the table: `sluice reset "
            f"{pipeline.name} --step {step.name} --tables`, and run",
        )
    why = _why_state(step, paths) if keeps_state(step, paths) else ""
    if why:
        raise SpecError(
            why,
            where=where,
            do="`sluice torture` compares its table with that of an undisturbed run",
        )


def _why_state(step: Step, paths: Paths) -> str:
    """Why a step's state is not what one batch makes of the same rows; empty where it is."""
    manifest = open_manifest(paths.checkpoint(step.name))
    if manifest.variables or any(what.startswith(_OWN) for what in manifest.state or []):
        return "its own code keeps state, which may hang on how rows were cut into batches"
    home = f"{paths.home(step.name)}/{manifest.generation}/"
    told = [one for report in list_reports(paths.reports()) for one in report.steps]
    late = sum(
        batch.counts.late for one in told for batch in one.batches if batch.key.startswith(home)
    )
    if late:
        return (
            f"{late:,} rows or groups came behind the watermark and were dropped, and in one batch "
            "nothing is late"
        )
    return ""


def refuse_gone(step: Step, paths: Paths, done: Done) -> None:
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
