"""Why Kafka did not take records, as a person reads it."""

import re

from ...errors import SinkError, TransientError
from ...spec import KafkaSink, resolve_cluster

_THROWN = re.compile(
    r"(?:org\.apache\.kafka\.[\w.]*?|kafka010\.)(\w+Exception)(?:: ([^\n]*)|(?=\s|$))"
)
_ADVICE = {
    "UnknownTopicOrPartition": "Create the topic, or mend `topic`",
    "InvalidTopic": "Mend `topic`",
    "KafkaIllegalState": "Give every row a topic: fill `topic_column` in the transform, or filter "
    "such rows",
    "TooLarge": "Send fewer columns, or raise `kafka.max.request.size` under `options` and the "
    "topic's max.message.bytes",
    "Authorization": "Give the user the right to write to the topic",
    "Authentication": "Mend `security` or the connection",
    "InvalidRecord": "A compacted topic takes no record without a key: write `key`",
    "Config": "Mend `options` or `security`",
    "Construct": "Mend `options` or `security`",
    "PolicyViolation": "Ask who keeps the brokers for what they refuse",
    "Unsupported": "Ask who keeps the brokers for their version",
}
"""Part of the name of an exception that trying again does not mend -> what does."""


def explain_refusal(error: Exception, sink: KafkaSink) -> Exception:
    """Kafka's own complaint as an error of ours; any other error as it is."""
    thrown = [
        ("Construct" if "Failed to construct" in said else name, said)
        for name, said in _THROWN.findall(str(error).partition("Driver stacktrace")[0])
    ]
    place = f"topic {sink.topic}" if sink.topic else f"topics of column {sink.topic_column}"
    where = f"sink kafka: {place} on brokers {resolve_cluster(sink)[0]}"
    for part, advice in _ADVICE.items():
        if any(part in name for name, _ in thrown):
            # The last cause says most of a setting that is wrong, the first says which topic is not
            # there.
            said = thrown[-1 if part in ("Construct", "Config") else 0][1]
            return SinkError(
                f"Kafka refuses the records: {said.rstrip('.')}", where=where, do=advice
            )
    if thrown:
        return TransientError(
            f"Kafka did not take the records: {(thrown[0][1] or thrown[0][0]).rstrip('.')}",
            where=where,
            do="See that the brokers run, then run again",
        )
    return error
