"""Drains one step: plan its stream, run it, plan it again without a file nobody can read, judge the
rows it wrote."""

from dataclasses import replace

from pyspark.sql import DataFrame

from ..backlog import measure_step, read_mark, refuse_another, watch_table
from ..checkpoint import Checkpoint, Entry, complete_epochs
from ..launch import (
    NO_DATA_BATCHES,
    PARTITIONS,
    SHARED_SHUFFLES,
    STATE_ENCODING,
    WATERMARK_POLICY,
)
from ..sources import Found, open_inputs
from ..spark.executors import fit_to_executors
from ..spark.failure import (
    SPARK_FAILED,
    ChangedTable,
    UnplannedFiles,
    UnreadableFile,
    explain,
)
from ..spark.state import count_state
from ..spark.table_setup import locate_target
from ..spec import Step, describe_trigger, never_ends, trigger_kind
from ..storage import spark_folder
from .batch import process
from .continuous import run_continuous
from .course import Course
from .drain import OutOfTime, Query, drain
from .facts import Facts
from .following import Followers
from .holding import describe_endless, look_at_state
from .judging import judge_tables, keep_unjudged
from .laps import Laps
from .pace import Pace
from .plan import Plan
from .planned import Batch
from .planning import plan_step
from .redefined import describe_redefined
from .refusals import BatchStopped
from .replacing import widen_range
from .run import Run
from .state_store import describe_fixed, store_settings
from .step_tables import complete_tables
from .tally import DRAIN, Tally
from .tries import describe_abandoned


def begin_step(run: Run, step: Step) -> Tally:
    """The tally of a step that has done nothing in this run yet."""
    checkpoint = run.checkpoint(step)
    complete_epochs(spark_folder(checkpoint))  # a continuous run that was killed left them
    target = locate_target(run.spark, step, run.paths)
    facts = Facts(
        name=step.name,
        target=target,
        shown=target or ", ".join(sink.title for sink in step.sinks),
        quarantine=run.paths.quarantine(step.name),
        late=run.paths.late(step.name),
        within=step.dedup.horizon if step.dedup else None,
    )
    return Tally(checkpoint, run.run_id, facts)


def run_step(run: Run, step: Step, tally: Tally, found: Found) -> bool:
    """Drain one step into its tally; False when the time budget ended it before its backlog.

    Args: found: what was found for it before Spark started. Raises what planning and draining
    raise.
    """
    trigger = run.mode.trigger(step)
    lost = describe_trigger(trigger) if trigger == step.trigger else None
    tally.warn(*([lost] if lost else []))
    if found.chosen is not None:
        found = replace(found, chosen=widen_range(run, step, found.chosen, tally.facts.target))
    inputs = open_inputs(run.pipeline, step, run.paths, run.mode, tally.checkpoint, found)
    if trigger_kind(trigger) == "continuous":
        run_continuous(run, step, tally, inputs, trigger)
        return True
    tally.resume(run.paths, step.name)
    tally.facts = replace(tally.facts, inputs=inputs.versions, waited_for=_waited_for(step))
    course = Course(run, step, tally, inputs, trigger, run.mode.end(trigger, run.deadline))
    while True:
        try:
            return _try_once(course)
        except (UnreadableFile, UnplannedFiles, ChangedTable) as error:
            inputs.absorb(error)
        except SPARK_FAILED as error:  # outside of the query, whose failures are explained there
            raise explain(error) from error
        finally:
            tally.close()
            tally.warn(*inputs.review([entry.batch for entry in tally.finished]))


def _waited_for(step: Step) -> frozenset[str]:
    """The inputs of which the slowest says what can be closed; none where the fastest does."""
    timed = (name for name, one in step.inputs.items() if one.watermark is not None)
    return frozenset(timed if step.watermark_policy == "min" else ())


def _try_once(course: Course) -> bool:
    """Plan and drain; True unless the time budget ended it. Table-level rules are judged on what
    was written, however the drain ended."""
    run, tally = course.run, course.tally
    with tally.spending("prepare"):
        frame, plan = _plan(course)
        followers = Followers(run, course.step, plan.outlet, plan.generation)
        followers.open(tally, plan.open_batch)
    if course.inputs.is_empty:
        complete_tables(run.spark, run.rights, plan)
        followers.follow(run.spark, tally)
        return True

    def take(rows: DataFrame, number: int) -> None:
        course.resume_watermarks(number)
        entry = take_batch(course, plan, rows, number)
        with tally.spending("sinks"):
            followers.follow(rows.sparkSession, tally, [entry])

    try:
        with tally.spending(DRAIN):
            done = drain(frame, take, _query(course, plan))
        _note_end(course, done)
        ended = True
    except OutOfTime:
        tally.left_for_next_run = True
        ended = False
    except BatchStopped as error:
        tally.refuse(error.verdicts, error.results)
        keep_unjudged(plan, tally)
        raise
    except (UnreadableFile, UnplannedFiles, ChangedTable):
        raise
    except Exception:
        keep_unjudged(plan, tally)
        raise
    tally.close()
    if ended and not tally.finished:
        Checkpoint.below(tally.checkpoint).note_look()
    _conclude(course, plan)
    followers.follow(run.spark, tally)
    return ended


def _conclude(course: Course, plan: Plan) -> None:
    """What is done and judged behind the last batch of a run."""
    run, tally = course.run, course.tally
    complete_tables(run.spark, run.rights, plan)
    judge_tables(run, plan, tally)
    tally.held = look_at_state(run, plan, tally.counted)
    tally.warn(*describe_endless(course.step, tally.held))


def _plan(course: Course) -> tuple[DataFrame, Plan]:
    run, step, tally = course.run, course.step, course.tally
    table = tally.facts.target or tally.facts.quarantine
    _look_at_target(tally, bool(step.groups))
    with run.rights.turn(step.name, table):  # it may create the tables
        frame, plan = plan_step(run, step, course.inputs, tally.facts.target)
    tally.warn(*course.inputs.warnings, *describe_abandoned(plan, run.spark))
    tally.warn(*describe_redefined(run, plan), *describe_fixed(run, plan))
    tally.judge_by(plan)
    course.tell()
    return frame, plan


def _look_at_target(tally: Tally, refreshed: bool) -> None:
    """Say what people did to the target since the last run. Args: refreshed: the run undoes it.
    Raises PreflightError where it is another table than the one that was filled."""
    target = tally.facts.target
    watched = watch_table(target, read_mark(tally.checkpoint), refreshed) if target else None
    refuse_another(target, watched, tally.checkpoint)
    tally.account_for(watched)


def take_batch(course: Course, plan: Plan, rows: DataFrame, number: int) -> Entry:
    """Work off one planned batch and note it."""
    run, tally = course.run, course.tally
    if not plan.stateful:
        _spread_as_now(run, rows)
    batch, laps = Batch.of(plan, rows, number, run.run_id), Laps()
    course.pace = Pace(batch.taken, laps)
    entry = process(plan, run.rights, batch, laps)
    course.pace = None
    if plan.stateful:
        tally.counted = count_state(run.spark)
    run.rights.check(plan.step.name)  # last: a note would stand over that of a run that took over
    course.note_watermarks(number)
    tally.take(entry)
    course.tell(entry.batch)
    return entry


def _spread_as_now(run: Run, rows: DataFrame) -> None:
    """Cut the shuffles of a batch into as many parts as the run would: Spark keeps the number of
    the first run in the checkpoint, and a pipeline that has moved to a cluster would go on with a
    laptop's. A state is bound to it. The executors were awaited as the step was planned."""
    fit_to_executors(run.spark, run.pipeline.spark, patience=0)
    parts = run.spark.conf.get(PARTITIONS[0])
    if parts is not None:
        rows.sparkSession.conf.set(PARTITIONS[0], parts)


def _query(course: Course, plan: Plan) -> Query:
    return Query(
        checkpoint=spark_folder(course.tally.checkpoint),
        deadline=course.run.deadline,
        each_second=course.look_around,
        trigger=course.trigger,
        end=course.end,
        mode=course.step.output_mode,
        settings={
            # A batch without rows costs as much as another, and moves a watermark that the next
            # run moves anyway: only where it closes what is held it is worth it.
            NO_DATA_BATCHES: str(plan.gathers).lower(),
            WATERMARK_POLICY: course.step.watermark_policy,
            STATE_ENCODING: plan.declared.encoding,
            **store_settings(course.run, course.step),
            SHARED_SHUFFLES: str(not plan.stateful).lower(),
        },
        own_state=bool(plan.declared.operators),
    )


def _note_end(course: Course, done: bool) -> None:
    """Say what is left where the query was stopped at its end: what waits then, or what a trial's
    time was too short for."""
    run, step, tally = course.run, course.step, course.tally
    if done:
        return
    if not run.mode.is_trial:
        waiting = measure_step(run.pipeline, step, run.paths)
        tally.left_for_next_run = waiting.open_batch or bool(waiting.amount)
    elif not never_ends(course.trigger):
        tally.warn(f"the trial's {run.mode.seconds:g} seconds ended before its source did")
