"""What the report tells of each of several inputs."""

from collections.abc import Sequence

from ..checkpoint import Reached, read_reached
from ..report import BatchReport, Counts, InputReport
from .facts import Facts


def report_inputs(
    facts: Facts, checkpoint: str, batches: Sequence[BatchReport]
) -> list[InputReport]:
    """What came of each input in these batches, and how far it has come by now."""
    if not facts.inputs:
        return []
    reached = read_reached(checkpoint)
    moments = {name: reached[name].ms for name in facts.waited_for if name in reached}
    slowest = min(moments, key=moments.__getitem__, default=None)
    apart = len(set(moments.values())) > 1
    found = []
    for name, version in facts.inputs.items():
        at: Reached | None = reached.get(name)
        found.append(
            InputReport(
                name=name,
                static_version=version,
                counts=sum((b.inputs[name] for b in batches if name in b.inputs), Counts()),
                watermark_ms=at.ms if at else None,
                moved_by=at.run_id if at else "",
                waits=name in facts.waited_for and at is None,
                holds_back=apart and name == slowest,
            )
        )
    return found
