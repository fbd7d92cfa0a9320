"""What Spark's continuous trigger can do, which is little: records of a topic, one by one, to another."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pipeline import Step


def why_not_continuous(step: "Step") -> str | None:
    """Why a step cannot run under the trigger `continuous`; None when it can. (Its transform is checked when Spark has read it.)"""
    if step.source.kind not in ("kafka", "rate"):
        return f"it reads only from kafka (or rate, in a trial), not from {step.source.kind}"
    if len(step.sinks) > 1:
        return "it has no batches that two sinks could share; write one sink"
    if step.sinks[0].kind not in ("kafka", "console"):
        return f"it has no batches, and the sink {step.sinks[0].kind} takes nothing else; write a kafka (or console) sink"
    for name, given in (
        ("dedup", step.dedup),
        ("rules", step.rules),
        ("event_time", step.event_time),
    ):
        if given:
            return f"it has no batches in which `{name}` could be looked at; leave it out"
    if getattr(step.source, "unknown_fields", "ignore") == "fail":
        return "it has no batches that `unknown_fields: fail` could refuse; write ignore"
    return None
