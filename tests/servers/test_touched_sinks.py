"""What people do to a sink's table, its ledger or its topic between two runs: told by name, with
the target going on meanwhile, and exact once it is mended."""

import pytest
from sluice.errors import ExitCode
from sluice.spec import Refill

from tests.servers.store import STEP, Store, assert_followed, lack, order, write_to
from tests.spark.factories import Project

SWALLOW = """
CREATE OR REPLACE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF NEW.n > 10 THEN RETURN NULL; END IF; RETURN NEW; END $$"""


@pytest.fixture
def clerk(postgres, store) -> Store:
    """The store by way of a user who is no superuser, with a ledger of its own."""
    store.sink |= {"user": "clerk", "ledger": f"{store.name}_ledger"}
    for sql in (
        "DROP OWNED BY clerk" if _has_clerk(postgres) else "CREATE ROLE clerk LOGIN",
        f"ALTER ROLE clerk PASSWORD '{postgres.password}'",
        "GRANT CREATE, USAGE ON SCHEMA public TO clerk",
    ):
        store.run(sql)
    return store


def _has_clerk(postgres) -> bool:
    with postgres.connect() as connection:
        return bool(connection.execute("SELECT FROM pg_roles WHERE rolname = 'clerk'").fetchall())


def fill(shop: Project, *numbers: int) -> list[str]:
    """A run with new orders, which ends well; returns what it warns of."""
    shop.land(f"{'-'.join(map(str, numbers))}.json", "".join(order(n) for n in numbers))
    report = shop.run()
    assert report.error is None
    return report.steps[0].warnings


def fill_again(shop: Project) -> None:
    """`sluice deliver --all`."""
    assert shop.run(refill=Refill(everything=True)).error is None


def test_a_ledger_that_was_dropped_knows_again_what_the_table_has(shop, clerk):
    write_to(shop, clerk.sink)
    fill(shop, 1)
    fill(shop, 2, 3)
    clerk.run(f"DROP TABLE {clerk.name}_ledger")
    (told,) = fill(shop, 4)
    assert f"the ledger {clerk.name}_ledger of jdbc {clerk.name} was dropped" in told
    fill_again(shop)
    assert_followed(shop, clerk, *((f"o{n}", n) for n in (1, 2, 3, 4)))
    assert fill(shop, 5) == []


def test_a_sink_that_was_added_later_gets_what_came_before_it_also_without_its_ledger(shop, clerk):
    fill(shop, 1)
    write_to(shop, clerk.sink)
    fill(shop, 2)
    clerk.run(f"DROP TABLE {clerk.name}_ledger")
    fill_again(shop)
    assert_followed(shop, clerk, ("o1", 1), ("o2", 2))


@pytest.mark.parametrize("what", ["ledger", "table"])
def test_a_right_that_was_taken_away_is_named_and_the_sink_filled_when_it_is_back(
    shop, clerk, what
):
    write_to(shop, clerk.sink)
    fill(shop, 1)
    table = f"{clerk.name}_ledger" if what == "ledger" else clerk.name
    clerk.run(f"REVOKE INSERT ON {table} FROM clerk")
    shop.land("2.json", order(2))
    refused = shop.run()
    assert (refused.status, refused.exit_code) == ("undelivered", ExitCode.TERMINAL)
    assert refused.counts.written == 1 and lack(refused) == (1, 1)
    assert f"permission denied for table {table}" in refused.error and "Grant it" in refused.error
    clerk.run(f"GRANT INSERT ON {table} TO clerk")
    fill(shop, 3)
    assert_followed(shop, clerk, ("o1", 1), ("o2", 2), ("o3", 3))


def test_a_trigger_that_leaves_rows_out_is_refused_and_none_of_the_batch_is_there(shop, store):
    write_to(shop, store.sink)
    fill(shop, 1)
    store.run(SWALLOW)
    store.run(
        f"CREATE TRIGGER few BEFORE INSERT ON {store.name} FOR EACH ROW EXECUTE FUNCTION swallow()"
    )
    shop.land("2.json", order(2) + order(99))
    refused = shop.run()
    assert (refused.status, refused.exit_code) == ("undelivered", ExitCode.TERMINAL)
    assert "the table took 1 of 2 rows: a trigger" in refused.error
    assert set(store.rows) == {("o1", 1)}
    store.run(f"DROP TRIGGER few ON {store.name}")
    fill(shop, 3)
    assert_followed(shop, store, ("o1", 1), ("o2", 2), ("o3", 3), ("o99", 99))


def test_a_column_that_was_dropped_holds_up_nothing_but_its_sink(shop, store):
    write_to(shop, store.sink)
    fill(shop, 1)
    store.run(f"ALTER TABLE {store.name} RENAME COLUMN n TO m")
    shop.land("2.json", order(2))
    refused = shop.run()
    assert (refused.status, refused.exit_code) == ("undelivered", ExitCode.TERMINAL)
    assert refused.counts.written == 1 and lack(refused) == (1, 1)
    assert "n" in refused.error and store.name in refused.error
    store.run(f"ALTER TABLE {store.name} RENAME COLUMN m TO n")
    fill(shop, 3)
    assert_followed(shop, store, ("o1", 1), ("o2", 2), ("o3", 3))


@pytest.fixture
def other(spark, tmp_path, shop) -> Project:
    """A second pipeline."""
    step = {**STEP, "sink": {"kind": "delta"}}
    return Project(spark, tmp_path / "other", {**shop.source}, step, {"name": "q"})


def test_two_pipelines_that_share_a_sinks_table_each_fill_their_part_of_it(shop, other, store):
    both = (shop, other)
    for number, each in enumerate(both):
        write_to(each, store.sink)
        fill(each, number)
    assert set(store.rows.elements()) == {("o0", 0), ("o1", 1)}
    store.run("ALTER TABLE sluice_batches RENAME TO sluice_batches_old")
    try:
        for number, each in enumerate(both, 2):
            (told,) = fill(each, number)
            assert "was dropped" in told
            fill_again(each)
        assert sorted(store.rows.elements()) == [(f"o{n}", n) for n in range(4)]
        store.run(f"TRUNCATE {store.name}")
        fill_again(shop)
        assert set(store.rows) == {("o0", 0), ("o2", 2)}
        (told,) = fill(other, 5)
        assert "was emptied and others wrote to it since" in told and "--all" in told
        fill_again(other)
        assert sorted(store.rows.elements()) == [(f"o{n}", n) for n in (0, 1, 2, 3, 5)]
    finally:
        store.run("DROP TABLE sluice_batches")
        store.run("ALTER TABLE sluice_batches_old RENAME TO sluice_batches")


def test_a_topic_that_takes_no_more_holds_up_nothing_and_gets_all_when_it_does(shop, kafka_broker):
    topic = kafka_broker.create_topic("takes_no_more")
    write_to(shop, {"kind": "kafka", "servers": kafka_broker.servers, "topic": topic, "key": "id"})
    fill(shop, 1)
    kafka_broker.set_topic_config(topic, max_message_bytes=20)
    shop.land("2.json", order(2))
    refused = shop.run()
    assert (refused.status, refused.exit_code) == ("undelivered", ExitCode.TERMINAL)
    assert refused.counts.written == 1 and lack(refused) == (1, 1)
    kafka_broker.set_topic_config(topic, max_message_bytes=None)
    fill(shop, 3)
    assert sorted({record.key for record in kafka_broker.read(topic)}) == [b"o1", b"o2", b"o3"]


def test_a_topic_that_was_deleted_gets_what_it_lacks_when_it_is_there_again(shop, kafka_broker):
    topic = kafka_broker.create_topic("deleted_behind_a_step")
    # This JVM's producer still knows the topic, and waits for it; a new one says that it is gone.
    quick = {"kafka.delivery.timeout.ms": "3000", "kafka.request.timeout.ms": "2000"}
    sink = {"kind": "kafka", "servers": kafka_broker.servers, "topic": topic, "key": "id"}
    write_to(shop, {**sink, "options": {**quick, "kafka.linger.ms": "0"}})
    fill(shop, 1)
    kafka_broker.delete_topic(topic)
    shop.land("2.json", order(2))
    refused = shop.run()
    assert refused.status == "undelivered" and topic in refused.error
    assert refused.counts.written == 1 and lack(refused) == (1, 1)
    kafka_broker.create_topic(topic)
    fill(shop, 3)
    assert sorted({record.key for record in kafka_broker.read(topic)}) == [b"o2", b"o3"]
