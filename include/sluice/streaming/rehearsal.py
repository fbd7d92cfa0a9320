"""Builds every step of a pipeline over an empty folder, so that Spark checks it.

SQL, Python, rules and columns are checked, and nothing is read.
"""

from pathlib import Path

from ..checkpoint import Rights
from ..launch.settings import spark_settings
from ..report import UNWATCHED
from ..sources import rehearse_intake
from ..spark.session import open_session
from ..spec import Mode, RunRequest, load_pipeline
from .planning import plan_step
from .run import Run


def build_without_data(file: Path, folder: Path) -> list[str]:
    """Names of the steps that were built, in order.

    What building creates goes into `folder`. Raises SpecError and PreflightError.
    """
    pipeline = load_pipeline(file)
    landing = Path(folder) / "landing"
    landing.mkdir(parents=True, exist_ok=True)
    mode = Mode.of(RunRequest(pipeline=str(file), root=str(folder)))
    paths = mode.place(str(folder), pipeline.name)
    with open_session(spark_settings(pipeline, 0, root=str(folder))) as spark:
        rights = Rights("rehearsal", {}, [], 0.0)
        run = Run(spark, pipeline, paths, mode, "rehearsal", rights, UNWATCHED)
        for step in pipeline.steps:
            intake = rehearse_intake(pipeline, step, paths, landing)
            plan_step(run, step, intake, step.target_path(paths))
    return [step.name for step in pipeline.steps]
