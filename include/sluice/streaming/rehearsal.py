"""Builds every step of a pipeline over an empty folder, so that Spark checks it.

SQL, Python, rules and columns are checked, and nothing is read.
"""

import re
from pathlib import Path

from ..checkpoint import Rights
from ..errors import SpecError
from ..launch.settings import spark_settings
from ..quality import rule_name
from ..report import UNWATCHED
from ..sources import rehearse_inputs
from ..spark.session import open_session
from ..spec import Mode, RunRequest, Step, load_pipeline
from ..spec.lines import At, Lines
from .planning import plan_step
from .run import Run


def build_without_data(file: Path, folder: Path) -> list[str]:
    """Names of the steps that were built, in order.

    What building creates goes into `folder`. Raises SpecError and PreflightError.
    """
    pipeline, lines = load_pipeline(file), Lines(file.read_text(encoding="utf-8"))
    landing = Path(folder) / "landing"
    landing.mkdir(parents=True, exist_ok=True)
    mode = Mode.of(RunRequest(pipeline=str(file), root=str(folder)))
    paths = mode.place(pipeline.paths(folder))
    with open_session(spark_settings(pipeline, 0, root=str(folder))) as spark:
        rights = Rights("rehearsal", {}, [], 0.0)
        run = Run(spark, pipeline, paths, mode, "rehearsal", rights, UNWATCHED)
        for number, step in enumerate(pipeline.steps):
            try:
                inputs = rehearse_inputs(pipeline, step, paths, landing)
                plan_step(run, step, inputs, step.target_path(paths))
            except SpecError as error:
                error.place = lines.describe(("steps", number, *_find_field(error.where, step)))
                error.do = _point_at(error, step, pipeline.folder) or error.do
                raise
    return [step.name for step in pipeline.steps]


def _find_field(where: str, step: Step) -> At:
    """The fields of a step that lead to what an error is about: a rule, the transform, a field."""
    for number, rule in enumerate(step.rules):
        if where == f"rule {rule_name(rule)}":
            return ("rules", number)
    if step.transform and where.endswith(step.transform):
        return ("transform",)
    return tuple(where.rpartition(" ")[2].split("."))


def _point_at(error: SpecError, step: Step, folder: Path) -> str:
    """The line of the SQL that an error names, with a caret below the mistake; empty for others."""
    place = re.search(r", line (\d+), column (\d+)$", error.what)
    if place is None or not step.transform:
        return ""
    rows = (folder / step.transform).read_text(encoding="utf-8").splitlines()
    number, column = int(place[1]), int(place[2])
    row = rows[number - 1].replace("\t", " ") if number <= len(rows) else ""
    return f"\n    {row}\n    {' ' * (column - 1)}^"
