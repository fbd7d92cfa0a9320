"""Where a step's state is kept while it runs, and what of that its checkpoint has fixed."""

from collections.abc import Iterator
from typing import NoReturn

from pyspark.sql import DataFrame

from ..checkpoint import Checkpoint
from ..errors import PreflightError, SpecError
from ..launch import STATE_STORES, WATERMARK_POLICY
from ..spark.plans import analyzed_plan, kind, walk
from ..spec import Step
from .plan import Plan
from .run import Run

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_NAMES = {settings[_PROVIDER]: name for name, settings in STATE_STORES.items()}
_SET_ANEW = {"spark.sql.shuffle.partitions"}
"""Kept by the checkpoint as well, and of no interest: a run cuts its other shuffles by itself."""


def store_settings(run: Run, step: Step) -> dict[str, str]:
    """Spark's settings for the store of a step: what it names, else what `spark:` does, else
    RocksDB."""
    asked = run.pipeline.spark
    if step.state_store is None and _PROVIDER in asked:
        store = STATE_STORES.get(_NAMES.get(asked[_PROVIDER], ""), {})
    else:
        store = STATE_STORES[step.state_store or "rocksdb"]
        asked = {name: value for name, value in asked.items() if name != _PROVIDER}
    return {**store, **{name: asked[name] for name in (*store, _PROVIDER) if name in asked}}


def check_store(run: Run, step: Step, frame: DataFrame) -> None:
    """Raise SpecError for a state that the step's store cannot hold."""
    nodes = (kind(node) for node in walk(analyzed_plan(frame)))
    named = next((name for name in nodes if name.startswith("TransformWithState")), None)
    provider = store_settings(run, step)[_PROVIDER]
    if named is not None and _NAMES.get(provider) == "hdfs":
        raise SpecError(
            "transformWithState keeps several variables a key, and the HDFS-backed store has room "
            "for one",
            where=f"{run.where(step)}: state_store",
            value="hdfs",
            do="Write `state_store: rocksdb`, or leave it out; or applyInPandasWithState",
        )


def refuse_other_store(run: Run, plan: Plan) -> None:
    """Raise PreflightError where the step names another store, or another policy of watermarks,
    than its checkpoint began with: Spark would go on with those in silence."""
    kept = _settings_of(plan) if plan.stateful else {}
    provider, policy = kept.get(_PROVIDER), kept.get(WATERMARK_POLICY)
    now = store_settings(run, plan.step)[_PROVIDER]
    if provider is not None and provider != now:
        told = _NAMES.get(provider)
        written = f"`state_store: {told}`" if told else f"`{_PROVIDER}: {provider}` under `spark`"
        _refuse(run, plan, "state_store", (told or provider, _NAMES.get(now, now)), written)
    asked = plan.step.watermark_policy
    if policy is not None and policy != asked and len(plan.step.streams) > 1:
        written = f"`watermark_policy: {policy}`"
        _refuse(run, plan, "watermark_policy", (policy, asked), written)


def _refuse(run: Run, plan: Plan, field: str, values: tuple[str, str], written: str) -> NoReturn:
    raise PreflightError(
        "the checkpoint keeps what it was begun with, and Spark goes on with that, whatever the "
        "file says",
        where=f"{plan.where}: {field}",
        value=f"before: {values[0]}; now: {values[1]}",
        do=f"Write {written}. Or begin anew: `sluice reset {run.pipeline.name} --step "
        f"{plan.step.name} --tables` reads everything again",
    )


def describe_fixed(run: Run, plan: Plan) -> Iterator[str]:
    """A sentence for each setting under `spark` that has no effect, because the checkpoint of a
    step with state keeps the one it began with."""
    kept = _settings_of(plan) if plan.stateful else {}
    for name, now in run.pipeline.spark.items():
        before = kept.get(name)
        if name not in _SET_ANEW and before is not None and before != str(now):
            yield (
                f"{name} {now} has no effect: the checkpoint was begun with {before}, which Spark "
                "goes on with"
            )


def _settings_of(plan: Plan) -> dict[str, str]:
    """The settings that the checkpoint keeps; none before its first batch was planned."""
    return Checkpoint.below(plan.place.checkpoint).settings
