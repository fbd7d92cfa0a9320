"""Cuts down Spark's logs of the files that a step has read, where it need not know them all."""

from collections.abc import Callable

from ..checkpoint.log import Checkpoint
from ..checkpoint.shorten import shorten_log
from ..errors import SluiceError
from ..spec import AVAILABLE_NOW, FileSource, Step
from .files import can_be_named


def shorten_logs(step: Step, checkpoint: str, check: Callable[[str], None]) -> list[str]:
    """Cut down the logs of a step's inputs; sentences about those that stay as they are although
    they should not. Call it while no stream of the step runs.

    Args: check: raises LeaseLost where another run has taken over a step of that name.
    """
    told = []
    for number, one in enumerate(step.streams.values()):
        if not isinstance(one.source, FileSource) or not _can_be_told(step, one.source):
            continue
        check(step.name)
        try:
            shorten_log(Checkpoint.below(checkpoint, number))
        except (OSError, ValueError, KeyError, SluiceError) as error:
            told.append(
                "Spark's log of the files that were read could not be cut down, the next run tries "
                f"again: {error}"
            )
    return told


def _can_be_told(step: Step, source: FileSource) -> bool:
    """Whether each run tells Spark what is new: a query that goes on has to list, and where a queue
    names new files, a listing is an audit of it."""
    return step.trigger == AVAILABLE_NOW and source.queue is None and can_be_named(source)
