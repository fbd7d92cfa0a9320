"""Builds every step of a pipeline over an empty folder, so that Spark checks it.

SQL, Python, rules and columns are checked, and nothing is read.
"""

from pathlib import Path

from ..sources import rehearse_intake
from ..spark.session import open_session
from ..spark.settings import spark_settings
from ..spec import RunRequest, load_pipeline
from ..storage import Paths
from .step import build_step


def build_without_data(file: Path, folder: Path) -> list[str]:
    """Names of the steps that were built, in order.

    What building creates goes into `folder`. Raises SpecError and PreflightError.
    """
    pipeline = load_pipeline(file)
    landing = Path(folder) / "landing"
    landing.mkdir(parents=True, exist_ok=True)
    request = RunRequest(pipeline=str(file), root=str(folder))
    with open_session(spark_settings(pipeline, 0, root=str(folder))) as spark:
        for step in pipeline.steps:
            paths = Paths.under(folder, pipeline.name)
            build_step(
                spark,
                pipeline,
                step,
                paths,
                request,
                rehearse_intake(pipeline, step, paths, landing),
                step.target_path(paths),
            )
    return [step.name for step in pipeline.steps]
