"""What a report says of each of several inputs."""

from collections.abc import Iterator

from .model import InputReport
from .units import format_watermark


def tell_inputs(inputs: list[InputReport]) -> Iterator[str]:
    """A line for each input, and which one holds the watermark back."""
    for one in inputs:
        if one.static_version is not None:
            yield f"Input {one.name}: a table, read at version {one.static_version:,}."
        elif one.counts.read or one.watermark_ms is not None:
            moved = f"; watermark {format_watermark(one.watermark_ms)}" if one.watermark_ms else ""
            yield f"Input {one.name}: {one.counts.records}{moved}."
        else:
            yield f"Input {one.name}: nothing came."
    yield from _tell_slowest(inputs)


def _tell_slowest(inputs: list[InputReport]) -> Iterator[str]:
    """What is held is closed when the slowest input has passed it."""
    waiting = [one.name for one in inputs if one.waits]
    if waiting:
        yield (
            f"Nothing that is held can be closed before the first row of {', '.join(waiting)}: "
            "until then nobody knows how far that input is."
        )
        return
    for slow in inputs:
        if slow.holds_back:
            yield (
                f"Input {slow.name} holds the watermark back: its newest row came with run "
                f"{slow.moved_by}."
            )
