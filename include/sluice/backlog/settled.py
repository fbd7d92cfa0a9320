"""Which batches have their fate, by Spark's checkpoint and the target's log."""

from ..checkpoint import noted_generation, noted_target
from ..checkpoint.log import Checkpoint
from .delta import find_commit_info


def settled_batch(checkpoint: Checkpoint) -> int | None:
    """The newest batch whose rows need not be read any more: one that Spark has committed, or whose
    rows are in the target although a kill came before Spark's commit. None before the first."""
    number, home = checkpoint.open_batch, str(checkpoint.folder.parent)
    target, generation = noted_target(home), noted_generation(home)
    if number is None or not target or generation is None:
        return checkpoint.newest_commit

    def is_of_batch(metadata: dict) -> bool:
        key = str(metadata.get("sluice"))
        return key.endswith(f"/{generation}") and metadata.get("number") == number

    return number if find_commit_info(target, is_of_batch) else checkpoint.newest_commit
