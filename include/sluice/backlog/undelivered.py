"""What further sinks lack of the target, by their positions alone."""

from ..checkpoint import Position, noted_generation, read_position
from ..checkpoint.log import Checkpoint
from ..spec import Step
from ..storage import Paths

Positions = dict[str, Position | None]
"""Title of a further sink -> its position, None where it has none yet."""


def read_positions(step: Step, paths: Paths) -> Positions:
    """The positions of the sinks that follow a step's target; none where it has no target.

    Raises PreflightError for one that cannot be read.
    """
    return {title: read_position(paths.position(step.name, title)) for title in step.followers}


def why_behind(step: Step, paths: Paths, checkpoint: Checkpoint, found: Positions) -> str:
    """Why a run must look after the further sinks; empty where each has what the target has."""
    if not found or checkpoint.newest_commit is None:
        return ""
    generation = noted_generation(paths.checkpoint(step.name))
    home = f"{paths.home(step.name)}/{generation}"
    for title, position in found.items():
        if position is None:
            return f"nothing is known of what {title} has got"
        if position.due:
            rows = sum(due.rows for due in position.due)
            return f"{title} lacks {rows:,} row(s) of {len(position.due):,} batch(es)"
        if position.seen.get(home, -1) < checkpoint.newest_commit:
            return f"{title} is behind the target"
    return ""


def describe_undelivered(found: Positions) -> list[str]:
    """A sentence of each batch that a sink lacks, or that was given up for it."""
    sentences = []
    for title, position in found.items():
        if position is None:
            continue
        for due in position.due:
            why = f": {due.said}" if due.said else ""
            since = f"since {due.since:%Y-%m-%d %H:%M:%S} UTC"
            sentences.append(f"{title} lacks {due.rows:,} row(s) of {due.key} {since}{why}")
        for lost in position.given_up:
            when = f"given up at {lost.at:%Y-%m-%d %H:%M:%S} UTC"
            sentences.append(
                f"{title} lacks {lost.rows:,} row(s) of {lost.key}, {when}: {lost.reason}"
            )
    return sentences
