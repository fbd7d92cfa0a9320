"""What a gate publishes and other DAGs wait for: an asset per step."""

from airflow.sdk import Asset, AssetAll, AssetAny

from ..spec import After


def step_asset(pipeline: str, step: str) -> Asset:
    """The asset of a step: `sluice.<pipeline>.<step>`."""
    return Asset(name=f"sluice.{pipeline}.{step}", group="sluice")


def awaited_assets(schedule: After) -> AssetAll | AssetAny:
    """What Airflow waits for before it starts a run of this schedule."""
    assets = [step_asset(*step.split(".")) for step in schedule.steps]
    return AssetAll(*assets) if schedule.needs_all else AssetAny(*assets)
