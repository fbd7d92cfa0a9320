"""Servers that go away in the middle of a run end it as one that may pass.

The runs after it complete what it began, once.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from sluice.errors import ExitCode
from sluice.report import RunReport
from sluice.sinks.jdbc import staging as jdbc_staging
from sluice.sinks.jdbc import transaction as jdbc
from sluice.sinks.kafka.sink import KafkaWriter
from sluice.streaming import step

from tests.crash.kafka_shop import KafkaShop, make_records
from tests.kafka_broker import KafkaBroker
from tests.postgres_server import PostgresServer

HASTY = {
    "kafka.default.api.timeout.ms": "2000",
    "kafka.request.timeout.ms": "2000",
    "kafkaConsumer.pollTimeoutMs": "2000",
}
NO_ANSWER, NO_DATABASE = "the brokers did not answer in time", "PostgreSQL failed: "


@dataclass(frozen=True)
class Outage:
    """A server that goes away when a function is called.

    `holder` has it by `name`; at its `call`-th call, before it does anything or after it has.
    """

    what: str
    holder: object
    name: str
    begin: Callable[[], None]
    end: Callable[[], None]
    says: str
    call: int = 1
    after: bool = False

    def wrap(self, original: Callable, begun: list[str]) -> Callable:
        """The function, with the outage; it begins once, and `begun` then has its name."""
        calls = []

        def begin() -> None:
            begun.append(self.what)
            self.begin()

        def wrapped(*args: object, **named: object) -> object:
            calls.append(args)
            if len(calls) == self.call and not self.after:
                begin()
            result = original(*args, **named)
            if len(calls) == self.call and self.after:
                begin()
            return result

        return wrapped


def list_outages(broker: KafkaBroker, postgres: PostgresServer) -> list[Outage]:
    """One after the other, further and further into a batch."""
    return [
        Outage(
            "the broker dies before the stream begins",
            step,
            "drain",
            broker.kill,
            broker.start,
            NO_ANSWER,
        ),
        Outage(
            "the broker is stopped before a planned batch is read",
            step,
            "take_batch",
            broker.stop,
            broker.start,
            NO_ANSWER,
        ),
        Outage(
            "the broker hangs while a batch is read",
            step,
            "take_batch",
            broker.hang,
            broker.wake,
            NO_ANSWER,
        ),
        Outage(
            "the database is stopped while Spark fills the staging table",
            jdbc_staging,
            "create_staging",
            postgres.stop,
            postgres.start,
            NO_DATABASE,
            after=True,
        ),
        Outage(
            "the database starts anew between staging and commit",
            jdbc,
            "stage",
            postgres.restart,
            lambda: None,
            NO_DATABASE,
            after=True,
        ),
        Outage(
            "the database dies when it has committed and not said so",
            jdbc.Ledger,
            "read",
            postgres.kill,
            postgres.start,
            NO_DATABASE,
            call=2,
        ),
        Outage(
            "the broker is stopped when only its topic lacks the batch",
            KafkaWriter,
            "deliver",
            broker.stop,
            broker.start,
            "Kafka did not take the records",
        ),
    ]


def run_into(outage: Outage, shop: KafkaShop, monkeypatch) -> RunReport:
    """The report of the run in which an outage began.

    A broker that has just come back may be too slow for `HASTY` once more; such a run ends before
    the outage, and the one after it goes on.
    """
    for _ in range(3):
        begun = []
        with monkeypatch.context() as patch:
            original = getattr(outage.holder, outage.name)
            patch.setattr(outage.holder, outage.name, outage.wrap(original, begun))
            try:
                report = shop.run()
            finally:
                if begun:
                    outage.end()
        if begun:
            return report
        print(f"before {outage.what}: {report.exit_code.name}, {report.error}", flush=True)
        assert report.exit_code is ExitCode.TRANSIENT
    raise AssertionError(f"{outage.what}: no run came so far")


def test_servers_that_go_away_in_a_run_cost_another_run_and_no_row(
    spark, kafka_broker, postgres, tmp_path, monkeypatch
):
    monkeypatch.setenv("PG_PASSWORD", postgres.password)
    monkeypatch.setattr(jdbc_staging, "SMALL", 0)  # a staging table for each batch
    shop = KafkaShop(
        tmp_path, kafka_broker, postgres, "outages", max_offsets_per_batch=60, options=HASTY
    )
    rng, wrong = random.Random(20260101), []
    shop.produce(make_records(rng, 50, 100))
    for outage in list_outages(kafka_broker, postgres):
        report = run_into(outage, shop, monkeypatch)
        print(f"{outage.what}: {report.exit_code.name}, {report.error}", flush=True)
        if report.exit_code is not ExitCode.TRANSIENT or outage.says not in report.error:
            wrong.append((outage.what, report.exit_code.name, report.error))
        shop.produce(make_records(rng, 20, 100))
    assert wrong == []
    done = shop.run()
    assert (done.exit_code, done.error) == (ExitCode.DONE, None)
    # A sink that is away holds up no batch, so the runs that met an outage have done their part.
    assert shop.batches > 4
    assert done.steps[0].undelivered == []
    assert shop.differences(spark) == []
