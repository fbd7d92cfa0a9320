"""Verifies the steps of a pipeline whose tables follow from others."""

from collections.abc import Iterator

from ..errors import SpecError
from ..launch import spark_settings
from ..report import Verification
from ..spark.session import open_session
from ..spec import Pipeline, Step
from ..storage import Paths


def choose_steps(pipeline: Pipeline, step: str | None) -> list[Step]:
    """The step that is named, else every step with `groups`. Raises SpecError where there is
    none."""
    found = [one for one in pipeline.steps if (one.groups if step is None else one.name == step)]
    if found:
        return found
    names = ", ".join(one.name for one in pipeline.steps)
    raise SpecError(
        "no step has `groups`, by which its table could be computed again"
        if step is None
        else "the pipeline has no such step",
        where=pipeline.name,
        value=step,
        do=f"There are: {names}"
        if step is not None
        else "`sluice torture` compares the tables of any step with those of undisturbed runs",
    )


def verify_steps(
    pipeline: Pipeline, steps: list[Step], paths: Paths, share: float
) -> Iterator[Verification]:
    """What each of these steps' tables should hold against what it holds."""
    with open_session(spark_settings(pipeline, None, root=paths.root)) as spark:
        from ..streaming.verifying import verify_step

        for step in steps:
            yield verify_step(spark, pipeline, step, paths, share)
