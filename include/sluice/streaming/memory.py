"""Whether a step's checkpoint and its tables belong together: one is the place in the source, the
others are the memory of what was read."""

from typing import Any

from pyspark.sql import DataFrame

from ..backlog import table_version
from ..checkpoint import Attempt, Checkpoint, Manifest, read_attempt, state_operators
from ..errors import PreflightError
from ..spark.fingerprint import compare_states, describe_state
from ..spark.table_setup import table_exists
from ..spark.tables import newest_writes, written_batches
from ..storage import spark_folder
from .plan import Plan
from .run import Run
from .variables import follow_variables


def check_memory(run: Run, plan: Plan, manifest: Manifest) -> None:
    """Raise PreflightError where a step's checkpoint and its tables do not belong together: what
    comes would be passed over, or be there twice."""
    _refuse_other_inputs(run, plan, manifest)
    _refuse_lost_target(run, plan, manifest)
    _refuse_older_checkpoint(run, plan)
    _refuse_doubling(run, plan, manifest)


def _has_begun(plan: Plan) -> bool:
    newest = Checkpoint.below(plan.place.checkpoint).newest_commit
    return plan.open_batch is not None or newest is not None


def _refuse_other_inputs(run: Run, plan: Plan, manifest: Manifest) -> None:
    """Raise PreflightError where the checkpoint, which knows streams by their number, would take
    the place of one for that of another."""
    before, now = manifest.inputs or [], list(plan.step.streams)
    now = now if len(now) > 1 else []
    if before == now or not _has_begun(plan):
        return
    reset = f"sluice reset {run.pipeline.name} --step {plan.step.name}"
    anew = (
        f"`{reset}` has all computed again, and what differs is written"
        if plan.refresh is not None
        else f"`{reset} --tables` reads everything again"
    )
    raise PreflightError(
        "the checkpoint belongs to other inputs, or to these in another order: it would take how "
        "far one was read for how far another was",
        where=f"{plan.where}: inputs",
        value=f"before: {', '.join(before) or 'one'}; now: {', '.join(now) or 'one'}",
        do=f"Write them as they were. Or begin anew: {anew}",
    )


def _refuse_lost_target(run: Run, plan: Plan, manifest: Manifest) -> None:
    """Raise PreflightError where the table is gone that a step's finished batches have filled: it
    is the memory of what was read."""
    if not plan.target.exists or manifest.target == "":
        return
    if Checkpoint.below(plan.place.checkpoint).newest_commit is None:
        return
    if table_exists(run.spark, plan.target.path):
        return
    moved = manifest.target not in (None, plan.target.path)
    what = (
        f"the step's table was {manifest.target}, and there is none at its new place"
        if moved
        else "the step's table is gone, and with it the memory of every row that was written"
    )
    raise PreflightError(
        what,
        where=plan.target.path,
        value=f"checkpoint {plan.place.checkpoint}",
        do=f"{'Move' if moved else 'Put'} the table {'there' if moved else 'back'}, or remove the "
        "checkpoint as well: the next run then reads the source from its start into a new table "
        "(of a topic, what the brokers still hold)",
    )


def _refuse_older_checkpoint(run: Run, plan: Plan) -> None:
    """Raise PreflightError where a step's tables hold batches that its checkpoint knows nothing of:
    an older copy of the checkpoint was put back. It would give the numbers of those batches to
    other records, and Delta passes over a write whose number it has."""
    place, checkpoint = plan.place, Checkpoint.below(plan.place.checkpoint)
    begun = (plan.open_batch, checkpoint.newest_commit)
    known = max((number for number in begun if number is not None), default=-1)
    ahead = _newest_batch(run, plan)
    if ahead <= known:
        return
    do = "Put the newest copy of the checkpoint back"
    if plan.step.remembers:
        do += (
            ". Where there is none, remove the whole checkpoint: the next run reads the source "
            "from its start, and the keys in the table keep its rows from being doubled"
        )
    else:
        do += (
            ". Where there is none, move checkpoint and tables away together: the step's table "
            "remembers no keys, so the next run has to fill a new one"
        )
    raise PreflightError(
        "the checkpoint is older than the step's tables: they hold a batch that it has not begun, "
        "so records would be passed over that nobody has written",
        where=place.checkpoint,
        value=f"batch {ahead} in the tables, {known if known >= 0 else 'none'} in the checkpoint",
        do=do,
    )


def _newest_batch(run: Run, plan: Plan) -> int:
    """The newest batch of the checkpoint's generation that a table of the step holds; -1 for
    none. Of refused and late rows a batch that the
    checkpoint has noted does not count: its plan may have been taken back, and its next try takes
    them back."""
    app_id, newest = plan.place.app_id, -1
    if plan.target.exists and table_version(plan.target.path) is not None:
        newest = newest_writes(run.spark, plan.target.path).get(app_id, -1)
    for table in (plan.place.quarantine, plan.place.late):
        if table_version(table) is not None:
            tried = Attempt.batch_of(newest_writes(run.spark, table).get(app_id, -1))
            if tried > newest and read_attempt(plan.place.checkpoint, tried) is None:
                newest = tried
    return newest


def _refuse_doubling(run: Run, plan: Plan, manifest: Manifest) -> None:
    """Raise PreflightError where a step that remembers no keys would read from its start into a
    table that it has filled through another checkpoint."""
    place, path = plan.place, plan.target.path
    checkpoint = Checkpoint.below(place.checkpoint)
    new = checkpoint.newest_commit is None and plan.open_batch is None
    if not new or manifest.anew or plan.step.remembers or run.mode.kind != "scheduled":
        return
    if plan.refresh is not None:
        return  # all is computed, and compared with what the table holds
    if not plan.target.exists or table_version(path) is None:
        return
    others = written_batches(run.spark, path, run.paths.home(plan.step.name))
    if others.keys() <= {plan.generation}:
        return
    reset = f"`sluice reset {run.pipeline.name} --step {plan.step.name}"
    raise PreflightError(
        "the checkpoint is new and the table is not: the step keeps no keys of its rows, so all "
        "that it reads again would be there twice",
        where=path,
        value=f"checkpoint {place.checkpoint}",
        do=f"Put the checkpoint back. Or fill a new table: {reset} --tables`. Or, where the source "
        f"holds none of those rows any more: {reset} --append`",
    )


def refuse_changed_state(run: Run, plan: Plan, manifest: Manifest, state: list[str]) -> None:
    """Raise PreflightError where a query keeps other things in state than its checkpoint holds:
    Spark would take the one for the other where their types agree."""
    noted = manifest.state
    if noted is None and _began_without_state(plan):
        noted = []
    if noted is None or not _has_begun(plan):
        return
    now, gone = compare_states(noted, state)
    if not now and not gone:
        return
    by_dedup = plan.step.dedup is not None and not plan.gathers
    reset = f"`sluice reset {run.pipeline.name} --step {plan.step.name}"
    do = (
        f"{reset}` reads everything again, and the keys in the table keep its rows from being "
        "doubled"
        if plan.step.remembers
        else f"{reset} --tables` reads everything again"
    )
    raise PreflightError(
        "what the step keeps in state was gathered by another query, and would be taken for what "
        "this one gathers",
        where=f"{plan.where}: {'dedup' if by_dedup else f'transform {plan.step.transform}'}",
        value=f"before: {'; '.join(gone) or 'less'}. Now: {'; '.join(now) or 'less'}",
        do=f"Write {'`dedup`' if by_dedup else 'the query'} as it was. Or begin anew: {do}",
    )


def _began_without_state(plan: Plan) -> bool:
    """True where batches were finished and none left a state."""
    folder = spark_folder(plan.place.checkpoint)
    return Checkpoint(folder).newest_commit is not None and not state_operators(folder)


def follow_state(run: Run, plan: Plan, manifest: Manifest, frame: DataFrame) -> dict[str, Any]:
    """What is noted of a query's state, by the fields of a manifest. Raises PreflightError where
    it means something else than what the checkpoint holds."""
    state = describe_state(frame, _describe_mode(plan)) if plan.stateful else []
    refuse_changed_state(run, plan, manifest, state)
    variables = follow_variables(run, plan, manifest)
    return {"state": state or None, "variables": variables or None}


def _describe_mode(plan: Plan) -> str:
    """The output mode, and what the target knows groups by: what it holds was put there by it."""
    step = plan.step
    known_by = ", ".join(step.target.keys) if step.target is not None else ""
    return f"{step.output_mode} by {known_by}" if known_by else step.output_mode
