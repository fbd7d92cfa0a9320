"""What Spark's continuous trigger can do, which is little: records of a topic, one by one, to
another."""

from collections.abc import Mapping

from .sink_kind import SinkKind
from .source_kind import SourceKind


def why_not_continuous(
    sources: list[SourceKind], sinks: list[SinkKind], asked: Mapping[str, object]
) -> str | None:
    """Why a step cannot run under the trigger `continuous`; None when it can.

    Its transform is checked when Spark has read it. Args: asked: field -> what the step asks of
    its batches there.
    """
    if len(sources) > 1:
        return "it has no batches in which several inputs could meet; write one `source`"
    source = sources[0]
    if not source.continuous:
        return f"it reads only from kafka (or rate, in a trial), not from {source.kind}"
    if len(sinks) > 1:
        return "it has no batches that two sinks could share; write one sink"
    if not sinks[0].continuous:
        return (
            f"it has no batches, and the sink {sinks[0].kind} takes nothing else; write a kafka "
            "(or console) sink"
        )
    for name, given in asked.items():
        if given:
            return f"it has no batches in which `{name}` could be looked at; leave it out"
    if source.refuses_unknown:
        return "it has no batches that `unknown_fields: fail` could refuse; write ignore"
    if source.malformed_limit is not None:
        return "it has no batches in which `max_malformed` could be looked at; leave it out"
    return None
