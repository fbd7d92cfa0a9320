"""What a report says of a step beside its counts: further sinks, copies, lateness, state."""

from collections import Counter
from collections.abc import Iterator

from .ending import describe_lack
from .held import tell_held
from .inputs import tell_inputs
from .lateness import suggest_within
from .model import StepReport
from .refreshed import tell_refreshed
from .units import format_amount, format_count, printable


def step_notes(step: StepReport) -> list[str]:
    """One sentence each: what came of each input and of the groups, what went where, keys whose
    copies differ, how late rows came, and what waits in state."""
    held = tell_held(step.held, step.watermark_after_ms)
    inputs = map(printable, tell_inputs(step.inputs))
    groups = map(printable, tell_refreshed(step.refresh))
    return [
        *inputs,
        *groups,
        *_tell_delivered(step),
        *_tell_copies(step),
        *_tell_lateness(step),
        *held,
    ]


def _tell_delivered(step: StepReport) -> Iterator[str]:
    for place, rows in step.delivered.items():
        yield f"{format_count(rows)} rows were delivered to {printable(place)}."
    missing, removed = Counter[str](), Counter[str]()
    for sent in step.deliveries:
        missing[sent.sink] += sent.missing
        removed[sent.sink] += sent.removed
    for place, keys in (+removed).items():
        yield f"{format_amount(keys, 'key')} without a row were removed from {printable(place)}."
    for place, rows in (+missing).items():
        yield (
            f"{format_amount(rows, 'row')} that {printable(place)} lacked had been deleted from "
            "the target, or restored away, before the sink could get them."
        )
    for lack in step.undelivered:
        if lack.batches:
            yield printable(describe_lack(lack))
        if lack.given_up:
            yield f"{format_amount(lack.given_up, 'row')} were given up for {printable(lack.sink)}."


def _tell_copies(step: StepReport) -> Iterator[str]:
    """Keys whose copies differ, and which of them the table holds."""
    if step.conflicts:
        samples = ", ".join(printable(sample) for sample in step.conflict_samples)
        shown = f" (for instance {samples})" if samples else ""
        kept = (
            f"; {format_count(step.counts.replaced)} rows of the table gave way to one that ranks "
            "before them"
            if step.counts.replaced
            else ""
        )
        yield (
            f"{format_count(step.conflicts)} keys came with differing content{shown}: `order_by` "
            f"names the winner, without it the first written stays{kept}."
        )
    if step.overtaken:
        yield (
            f"{format_count(step.overtaken)} keys: a row that ranks first by `order_by` came after "
            "the one in the table, which stays because the step promises `first_arrives_first`; "
            "without that promise the table would hold the winner."
        )


def _tell_lateness(step: StepReport) -> Iterator[str]:
    """How far behind rows came, and how long a horizon they would have needed."""
    behind = sum(step.lateness[1:])
    if behind:
        enough = suggest_within(step.lateness)
        advice = (
            f"`within: {enough}` would have covered 99.9 % of all rows"
            if enough
            else "no `within` up to a year would have covered 99.9 % of all rows"
        )
        yield (
            f"{format_count(behind)} rows came behind the newest one of earlier batches; {advice}."
        )
    if step.counts.late_merged and step.within:
        yield (
            f"{format_count(step.counts.late_merged)} rows were older than the newest by more than "
            f"`within: {step.within}`: a copy of theirs with a time farther away than that was not "
            "looked for."
        )
