"""Pipeline -> two DAGs: `<name>` drains what is new, `<name>_backfill` covers a range of event
time; and a third, `<name>_verify`, where the file says when.
"""

from collections.abc import Iterable
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param

from ..errors import SpecError
from ..spec import Pipeline, find_pipelines, load_pipeline
from .assets import step_asset
from .deliver import DeliverOperator
from .named import pipelines_folder
from .pools import pool_name
from .submit import RunPipelineOperator
from .tasks import gate_task, probe_task
from .timetable import backfill_timetable, scheduled_timetable
from .verify import VerifyOperator

BACKFILL, VERIFY = "_backfill", "_verify"
_EVERY_RUN_BUT_BACKFILL = [
    "scheduled",
    "manual",
    "operator_triggered",
    "asset_triggered",
    "asset_materialization",
]
MARGIN = timedelta(minutes=10)
"""What a run needs besides its budget: starting Spark, table-level rules, the report."""
RETRY_DELAY = timedelta(minutes=2)

_BACKFILL_NOTE = """Reads the landing files of a range again, with a checkpoint of its own, and
writes what is missing into the tables of `{name}`. The scheduled checkpoint is neither read nor
moved; repeating a range changes nothing.

- A range of intervals: `airflow backfill create --dag-id {name}_backfill --from-date 2026-01-01
  --to-date 2026-01-05 --max-active-runs 1`
- One range: trigger this DAG with `from` and `to`.
- `write: replace` puts the range in place of what the table holds, atomically; `merge` only adds
  what is missing.

"""


_VERIFY_NOTE = """Reads what `{name}` has read once more, and compares what comes of it with what
its tables hold, row by row. No table is changed.

It takes turns with the pipeline at its pool, so that no batch is under way. What cannot be compared
is named in the report: queries with state, files that are gone.

"""


def _spark_task(pipeline: Pipeline) -> dict[str, Any]:
    """What every task that runs Spark is given."""
    return {
        "conn_id": pipeline.spark_conn_id,
        "pool": pool_name(pipeline.name),
        "pool_slots": 1,
        "max_active_tis_per_dag": 1,
        "execution_timeout": pipeline.budget + MARGIN,
        "retries": pipeline.max_batch_failures,
        "retry_delay": RETRY_DELAY,
        "retry_exponential_backoff": True,
    }


def _add_tasks(pipeline: Pipeline, file: str, *, backfill: bool) -> RunPipelineOperator:
    """The tasks `run` and `gate`, and `deliver` where a sink follows a table; returns the first."""
    run = RunPipelineOperator(
        task_id="run",
        pipeline_file=file,
        backfill=backfill,
        doc_md="Spark: land → dedupe → check → Delta → report. One run at a time may use the "
        "checkpoint (one-slot pool).",
        **_spark_task(pipeline),
    )
    run >> _gate_task(pipeline)
    if any(step.followers for step in pipeline.steps):
        run >> DeliverOperator(
            task_id="deliver",
            pipeline_file=file,
            doc_md="Sends further sinks what the run could not. Starts no Spark where every sink "
            "has all; a sink that is out holds up nothing that waits for the table.",
            **_spark_task(pipeline),
        )
    return run


def _gate_task(pipeline: Pipeline):
    return gate_task.override(
        outlets=[step_asset(pipeline.name, step.name) for step in pipeline.steps],
        execution_timeout=MARGIN,
        retries=1,
        doc_md="Publishes the asset events, or blocks what is downstream.",
    )(pipeline.name)


def _common(pipeline: Pipeline, run_types: list[str]) -> dict[str, Any]:
    start = pipeline.start_date
    return {
        "start_date": start.replace(tzinfo=UTC) if start.tzinfo is None else start,
        "catchup": False,
        "allowed_run_types": run_types,
        # Only what a DAG file puts into its globals is a DAG: broken_pipelines.py keeps none.
        "auto_register": False,
        "max_active_runs": 1,
        "default_args": {"owner": pipeline.owner, "retry_delay": timedelta(seconds=30)},
    }


def build_dag(pipeline: Pipeline, path: Path) -> DAG:
    """The DAG `<name>`: probe -> run -> gate, and run -> deliver where sinks follow a table.

    Raises SpecError when the schedule is not one Airflow understands.
    """
    with DAG(
        pipeline.name,
        schedule=scheduled_timetable(pipeline.schedule, str(path)),
        doc_md=pipeline.description
        or f"Pipeline `{pipeline.name}`. Write a `description:` in {path.name} and it is shown "
        "here.",
        tags=["sluice"],
        **_common(pipeline, _EVERY_RUN_BUT_BACKFILL),
    ) as dag:
        probe = probe_task.override(
            execution_timeout=MARGIN,
            retries=1,
            doc_md="Is anything new? Without a JVM; in doubt, yes.",
        )(path.name)
        probe >> _add_tasks(pipeline, path.name, backfill=False)
    return dag


def build_backfill_dag(pipeline: Pipeline, path: Path) -> DAG:
    """The DAG `<name>_backfill`: run -> gate, never started by the scheduler itself.

    Raises SpecError as `build_dag` does.
    """
    moment: dict[str, Any] = {"type": ["null", "string"], "format": "date-time"}
    with DAG(
        pipeline.name + BACKFILL,
        schedule=backfill_timetable(pipeline.schedule, str(path)),
        doc_md=_BACKFILL_NOTE.format(name=pipeline.name) + pipeline.description,
        tags=["sluice", "backfill"],
        is_paused_upon_creation=False,
        params={
            "from": Param(
                None,
                **moment,
                description="First moment of the range (UTC); only for runs started by hand.",
            ),
            "to": Param(None, **moment, description="End of the range, not included."),
            "write": Param(
                "merge",
                type="string",
                enum=["merge", "replace"],
                description="Add what is missing, or replace the range.",
            ),
        },
        **_common(pipeline, ["backfill", "manual"]),
    ) as dag:
        _add_tasks(pipeline, path.name, backfill=True)
    return dag


def build_verify_dag(pipeline: Pipeline, path: Path) -> DAG:
    """The DAG `<name>_verify`: one task. Raises SpecError as `build_dag` does."""
    with DAG(
        pipeline.name + VERIFY,
        schedule=scheduled_timetable(pipeline.verify, str(path), "verify"),
        doc_md=_VERIFY_NOTE.format(name=pipeline.name),
        tags=["sluice", "verify"],
        **_common(pipeline, _EVERY_RUN_BUT_BACKFILL),
    ) as dag:
        VerifyOperator(
            task_id="verify",
            pipeline_file=path.name,
            doc_md="Fails, with the tables and keys, where one does not hold what its inputs give.",
            **_spark_task(pipeline),
        )
    return dag


def load_dags(
    folder: str | Path | None = None, only: str | None = None
) -> tuple[dict[str, DAG], list[SpecError]]:
    """Build the DAGs of every pipeline file in a folder, and collect an error for a broken one.

    Args:
        folder: `$SLUICE_PIPELINES` by default.
        only: the one DAG id a task needs; then the other files are not read.
    """
    files = find_pipelines(folder or pipelines_folder())
    stems = {only, (only or "").removesuffix(BACKFILL), (only or "").removesuffix(VERIFY)}
    named = [path for path in files if only and path.stem in stems]
    dags, errors = _build_all(named)
    return (dags, errors) if only in dags else _build_all(files)


def _build_all(files: Iterable[Path]) -> tuple[dict[str, DAG], list[SpecError]]:
    dags: dict[str, DAG] = {}
    errors: list[SpecError] = []
    for path in files:
        try:
            pipeline = load_pipeline(path)
            made = [build_dag(pipeline, path), build_backfill_dag(pipeline, path)]
            made += [build_verify_dag(pipeline, path)] if pipeline.verify is not None else []
            built = {dag.dag_id: dag for dag in made}
            taken = sorted(built.keys() & dags.keys())
            if taken:
                raise SpecError(
                    "name: another file already makes a DAG of this name",
                    where=str(path),
                    value=taken[0],
                    do="Give each pipeline its own name",
                )
            dags |= built
        except SpecError as error:
            errors.append(error)
    return dags, errors
