"""What Spark says when Kafka fails it, in its own words, and what a run makes of that."""

import pytest
from pyspark.errors import PySparkException
from sluice.errors import SourceError, TransientError
from sluice.sources.kafka_options import reader_options
from sluice.spark.failure import explain
from sluice.spec import KafkaSource

STACK = "\n\tat org.apache.spark.scheduler.Task.run(Task.scala:147)\n"
JOB = (
    "An error occurred while calling o2403.collectToPython.\n"
    ": org.apache.spark.SparkException: Job aborted due to stage failure: "
    "Task 1 in stage 33.0 failed 1 times, most "
    "recent failure: Lost task 1.0 in stage 33.0 (TID 52) (10.0.0.2 executor driver): "
)
EXPIRED = """An error occurred while calling o12615.collectToPython.
: org.apache.spark.sql.kafka010.KafkaIllegalStateException: \
Some data may have been lost because they are not available in Kafka any more;
either the data was aged out by Kafka or the topic may have been deleted before all the data in the
topic was processed.
If you don't want your streaming query to fail on such cases, \
set the source option failOnDataLoss to false.
Reason: Could not read records in offset [19, 37) for topic partition orders-0
with consumer group spark-kafka-source-575503c8-5135-435e-a7ac-f9b250b4aa7d-1062960241-executor."""
OUT_OF_RANGE = (
    "Caused by: org.apache.kafka.clients.consumer.OffsetOutOfRangeException: "
    "Fetch position FetchPosition{offset=19, offsetEpoch=Optional.empty, "
    "currentLeader=LeaderAndEpoch{leader=Optional[10.0.0.3:9092 (id: 1 rack: null)], epoch=0}} "
    "is out of range for partition orders-0"
)


@pytest.mark.parametrize(
    "text",
    [
        EXPIRED + STACK + OUT_OF_RANGE + STACK,
        JOB + OUT_OF_RANGE.removeprefix("Caused by: ") + STACK,
    ],
    ids=["spark", "kafka"],
)
def test_records_that_are_gone_are_no_reason_to_try_again(text):
    error = explain(PySparkException(text))
    assert type(error) is SourceError
    assert (
        "gone from the brokers" in str(error)
        and "orders-0" in str(error)
        and "`fail_on_data_loss: false`" in str(error)
    )
    assert "consumer group" not in str(error)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"{JOB}org.apache.kafka.common.errors.TimeoutException: Timeout of 3000ms expired "
            f"before the position for partition orders-2 could be determined{STACK}",
            "Timeout of 3000ms expired before the position for partition orders-2 "
            "could be determined",
        ),
        (
            "[STREAM_FAILED] Query [id = 1c14c76c-afdc-44b1-a64e-09c24658321c, "
            "runId = 8cdce1e7-dd7d-49b1-ab68-e8e6c3fd3767] terminated with exception: "
            "org.apache.kafka.common.errors.TimeoutException: "
            "Timed out waiting for a node assignment. Call: listNodes SQLSTATE: XXKST\n"
            "=== Streaming Query ===",
            "Timed out waiting for a node assignment. Call: listNodes",
        ),
    ],
    ids=["task", "driver"],
)
def test_brokers_that_do_not_answer_are_worth_another_try(text, said):
    error = explain(PySparkException(text))
    assert (type(error), error.what) == (
        TransientError,
        f"the brokers did not answer in time: {said}",
    )


def bounds(**options: str) -> dict[str, str]:
    source = KafkaSource(
        kind="kafka",
        servers="a:1",
        subscribe="orders",
        format="text",
        schema={"value": "string"},
        options=options,
    )
    chosen = reader_options(source, {})
    return {name.lower(): value for name, value in chosen.items() if "timeout" in name.lower()}


def test_a_reader_waits_for_brokers_no_longer_than_its_bounds_and_the_pipeline_may_set_others():
    ours = bounds()
    assert ours == {
        "kafka.default.api.timeout.ms": "20000",
        "kafka.request.timeout.ms": "15000",
        "kafkaconsumer.polltimeoutms": "30000",
    }
    assert bounds(**{"kafkaConsumer.pollTimeoutMs": "90000"}) == ours | {
        "kafkaconsumer.polltimeoutms": "90000"
    }
    # Kafka refuses a client whose request may take longer than the whole call: of the two, both
    # are ours or none.
    assert bounds(**{"kafka.request.timeout.ms": "60000"}) == {
        "kafka.request.timeout.ms": "60000",
        "kafkaconsumer.polltimeoutms": "30000",
    }
