"""What further sinks lack of the target, by their positions alone."""

from collections.abc import Iterator

from ..checkpoint import Position, noted_generation, read_position
from ..checkpoint.log import Checkpoint
from ..spec import Step
from ..storage import Paths


def why_behind(step: Step, paths: Paths, checkpoint: Checkpoint) -> str:
    """Why a run must look after the further sinks; empty where each has what the target has.

    Raises PreflightError for a position that cannot be read.
    """
    if step.target is None or checkpoint.newest_commit is None:
        return ""
    generation = noted_generation(paths.checkpoint(step.name))
    home = f"{paths.pipeline}/{step.name}/{generation}"
    for title, position in _positions(step, paths):
        if position is None:
            return f"nothing is known of what {title} has got"
        if position.due:
            rows = sum(due.rows for due in position.due)
            return f"{title} lacks {rows:,} row(s) of {len(position.due):,} batch(es)"
        if position.seen.get(home, -1) < checkpoint.newest_commit:
            return f"{title} is behind the target"
    return ""


def describe_undelivered(step: Step, paths: Paths) -> list[str]:
    """A sentence of each batch that a sink lacks, or that was given up for it."""
    sentences = []
    for title, position in _positions(step, paths):
        for due in position.due if position is not None else ():
            why = f": {due.said}" if due.said else ""
            since = f"since {due.since:%Y-%m-%d %H:%M:%S} UTC"
            sentences.append(f"{title} lacks {due.rows:,} row(s) of {due.key} {since}{why}")
        for lost in position.given_up if position is not None else ():
            when = f"given up at {lost.at:%Y-%m-%d %H:%M:%S} UTC"
            sentences.append(
                f"{title} lacks {lost.rows:,} row(s) of {lost.key}, {when}: {lost.reason}"
            )
    return sentences


def _positions(step: Step, paths: Paths) -> Iterator[tuple[str, Position | None]]:
    for title, sink in step.further_sinks.items():
        if sink.durable and step.target is not None:
            yield title, read_position(paths.position(step.name, title))
