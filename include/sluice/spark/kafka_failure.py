"""What to make of Spark's failure to read from Kafka: are records gone, or the brokers away?"""

import re

from ..errors import SluiceError, SourceError, TransientError

_LOST = re.compile(
    r"Some data may have been lost because they are not available in Kafka any more.*?"
    r"Reason:\s*(.*?)\s*(?:with consumer group|\n\s*at |SQLSTATE|\Z)",
    re.DOTALL,
)
_THROWN = re.compile(r"org\.apache\.kafka\.(?:common|clients)\.[\w.]*?(\w+Exception): ([^\n]*)")
UNFIT = "a record does not fit the schema of static input"
_UNFIT = re.compile(rf"({UNFIT} \w+: .*?) at (\{{.*?\}})")
_GONE = ("OffsetOutOfRangeException", "UnknownTopicOrPartitionException")


def explain_kafka(text: str) -> SluiceError | None:
    """The error for what Spark says about Kafka; None when it is not about Kafka.

    Brokers that are away, and a topic that is deleted while a task reads it, look the same to a
    client: the next run asks the brokers and knows.
    """
    if unfit := _UNFIT.search(text):
        return SourceError(
            unfit[1],
            value=unfit[2],
            do="Mend the schema, or send the record anew under its key and write "
            "`newest_per_key: true`; a static input has no quarantine, so read a topic whose "
            "records may be malformed in a step of its own",
        )
    lost, thrown = _LOST.search(text), _THROWN.search(text)
    name, words = (thrown[1], thrown[2]) if thrown else ("", "")
    if lost or name in _GONE:
        said = lost[1] if lost else f"{name}: {words}"
        return SourceError(
            "records that were planned to be read are gone from the brokers: "
            "they expired, or the topic was deleted",
            value=_shorten(said),
            do="Restore the topic, or write `fail_on_data_loss: false` to go on with what there "
            "is; keep records for longer than runs lie apart",
        )
    if "KAFKA_MALFORMED_RECORD_TIMESTAMP" in text or "overflows when converting to Spark's" in text:
        said = next((line for line in text.splitlines() if "timestamp value" in line), "")
        return SourceError(
            "a record's timestamp is none: milliseconds since 1970 are wanted",
            value=_shorten(said),
            do="Mend what produces it, and move the checkpoint's offsets past it or let the record "
            "expire",
        )
    if name in ("TimeoutException", "DisconnectException", "NetworkException"):
        return TransientError(
            f"the brokers did not answer in time: {_shorten(words)}",
            do="See that they run and can be reached from here, then run again",
        )
    return None


def _shorten(said: str) -> str:
    return " ".join(said.partition("SQLSTATE")[0].split())[:300].rstrip(". ")
