"""One-slot pools: a schedule, a backfill and a person's run of one pipeline take turns.

A task whose pool does not exist stays `scheduled` for ever, with a warning only the scheduler sees.
So pools are created when a deployment is set up (`create_pools`) and again, for pipelines added
later, by the scheduler itself as a run starts (`on_dag_run_running`).
"""

from collections.abc import Iterable
from pathlib import Path

from airflow.listeners import hookimpl

from ..errors import SpecError
from ..spec import find_pipelines, load_pipeline
from .named import pipelines_folder

PREFIX = "sluice_"
_DESCRIPTION = "One run at a time may use the pipeline's checkpoint"


def pool_name(pipeline: str) -> str:
    """The pool that guards a pipeline's checkpoints."""
    return f"{PREFIX}{pipeline}"


def create_pools(folder: str | Path | None = None) -> list[str]:
    """Create the pool of every pipeline in a folder and return their names.

    Needs access to Airflow's metadata database. A pipeline file that cannot be read is left out:
    its DAG does not exist either.
    """
    from airflow.utils.session import create_session

    names = []
    for path in find_pipelines(folder or pipelines_folder()):
        try:
            names.append(pool_name(load_pipeline(path).name))
        except SpecError as error:
            print(f"No pool for {path.name}: {error}")
    with create_session() as session:
        create_missing(session, names)
    return names


def create_missing(session, names: Iterable[str]) -> None:
    """Add the pools that are not there, within the caller's transaction and whoever else adds them
    at the same moment."""
    from airflow.models.pool import Pool
    from sqlalchemy import insert, select
    from sqlalchemy.dialects import postgresql, sqlite

    dialect = session.get_bind().dialect.name
    for name in sorted(set(names) - set(session.scalars(select(Pool.pool)))):
        values = {"pool": name, "slots": 1, "description": _DESCRIPTION, "include_deferred": False}
        if dialect == "mysql":
            session.execute(insert(Pool).prefix_with("IGNORE").values(values))
        elif dialect == "postgresql":
            session.execute(postgresql.insert(Pool).on_conflict_do_nothing().values(values))
        else:
            session.execute(sqlite.insert(Pool).on_conflict_do_nothing().values(values))


@hookimpl
def on_dag_run_running(dag_run, msg) -> None:
    """Create the pools a starting run needs, in the scheduler's own transaction and without a
    commit, which the scheduler forbids there."""
    from sqlalchemy import inspect

    session = inspect(dag_run).session
    if session is not None:
        create_missing(
            session, {task.pool for task in dag_run.task_instances if task.pool.startswith(PREFIX)}
        )


if __name__ == "__main__":
    print("Pools:", ", ".join(create_pools()) or "none")
