"""A real PostgreSQL gets each batch once, whatever happens between the batch and it."""

import json
import threading
import zlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sluice.errors import ExitCode, SinkError, SpecError, TransientError

from tests.servers.jdbc_target import Target, expected, orders

MANY = 1500
"""Rows of a batch that goes through a staging table."""
SIZES = pytest.mark.parametrize("size", [3, MANY], ids=["few", "many"])


@pytest.fixture
def target(spark, postgres, request):
    """Makes sinks; each test has a table and a ledger of its own."""
    number = zlib.crc32(request.node.name.encode())

    def make(**sink) -> Target:
        return Target(
            spark, postgres, **{"table": f"t{number}", "ledger": f"ledger{number}", **sink}
        )

    return make


@SIZES
@pytest.mark.parametrize("mode", [{}, {"mode": "upsert", "keys": ["id"]}], ids=["append", "upsert"])
def test_a_batch_that_is_delivered_twice_is_there_once(target, spark, mode, size):
    table = target(partitions=4, **mode)
    assert table.write(orders(spark, size)) == size
    assert table.deliver(orders(spark, size)) == size
    assert table.held() == expected(size)
    assert table.deliver(orders(spark, 2, "later"), batch=1) == 2
    both = (
        expected(size) + expected(2, "later")
        if not mode
        else expected(size) - expected(2) + expected(2, "later")
    )
    assert table.held() == both
    assert table.staging() == []


def test_the_ledger_says_what_was_written(target, spark):
    table = target()
    table.write(orders(spark))
    table.deliver(orders(spark, 0), batch=1)
    assert sorted(table.ask(f"SELECT key, target, batch, rows FROM {table.sink.ledger}")) == [
        ("sluice/shop/orders/g1", f"public.{table.table}", 0, 3),
        ("sluice/shop/orders/g1", f"public.{table.table}", 1, 0),
    ]


def test_two_tables_with_one_ledger_and_a_new_checkpoint_generation_are_told_apart(target, spark):
    first = target()
    second = target(table=f"{first.table}_b")
    assert [first.write(orders(spark)), second.write(orders(spark))] == [3, 3]
    assert first.held() == second.held() == expected()
    first.deliver(orders(spark), key="sluice/shop/orders/g2")
    assert first.held() == expected() + expected()


@SIZES
def test_a_delivery_that_is_cut_off_before_its_commit_leaves_nothing_visible(target, spark, size):
    table = target()
    table.prepare(orders(spark))
    with table.postgres.connect(autocommit=False) as blocker, ThreadPoolExecutor(1) as pool:
        blocker.execute(f"LOCK TABLE {table.table} IN SHARE MODE")
        delivery = pool.submit(table.deliver, orders(spark, size))
        blocker.execute("SELECT pg_terminate_backend(%s)", [table.wait_until_blocked()])
        with pytest.raises(TransientError, match="57P01|08006"):
            delivery.result()
    assert table.held() == Counter()
    assert table.ask(f"SELECT * FROM {table.sink.ledger}") == []
    assert len(table.staging()) == (1 if size == MANY else 0)
    table.prepare(orders(spark))
    assert table.staging() == []
    assert table.deliver(orders(spark, size)) == size
    assert table.held() == expected(size)


def test_a_server_that_restarts_between_two_deliveries_is_worth_another_try(target, spark):
    table = target()
    table.write(orders(spark))
    table.postgres.stop()
    with pytest.raises(TransientError) as error:
        table.deliver(orders(spark), batch=1)
    assert error.value.exit_code is ExitCode.TRANSIENT and "08001" in str(error.value)
    table.postgres.start()
    assert table.deliver(orders(spark), batch=1) == 3
    assert table.held() == expected() + expected()


@SIZES
def test_a_batch_that_two_deliver_at_once_is_there_once(target, spark, size):
    table = target()
    table.prepare(orders(spark))
    barrier = threading.Barrier(2)

    def race(_: int) -> int:
        barrier.wait()
        return table.deliver(orders(spark, size))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(race, range(2))) == [size, size]
    assert table.held() == expected(size)
    assert table.staging() == []


@SIZES
@pytest.mark.parametrize("other_commits", [True, False], ids=["commits", "rolls_back"])
def test_where_two_note_a_batch_the_ledgers_key_decides(target, spark, size, other_commits):
    table = target()
    table.prepare(orders(spark))
    with table.postgres.connect(autocommit=False) as other, ThreadPoolExecutor(1) as pool:
        other.execute(
            f"INSERT INTO {table.sink.ledger} "
            f"VALUES ('sluice/shop/orders/g1', 'public.{table.table}', 0, 77)"
        )
        delivery = pool.submit(table.deliver, orders(spark, size))
        table.wait_until_blocked()
        table.prepare(
            orders(spark)
        )  # drops what deliveries have left that died, and nothing of one that lives
        assert len(table.staging()) == (1 if size == MANY else 0)
        other.commit() if other_commits else other.rollback()
        assert delivery.result() == (77 if other_commits else size)
    assert table.held() == (Counter() if other_commits else expected(size))


def test_tables_that_two_steps_need_at_once_are_created_once(target, spark):
    table = target()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: table.prepare(orders(spark)), range(4)))
    assert table.deliver(orders(spark)) == 3


TYPES = """
SELECT 0 AS id, 'ä"\\\\{}, NULL' AS s, X'00FF10' AS bin, true AS flag, 1Y AS b, -2S AS sh,
  3 AS i, 9223372036854775807L AS l, 12345678901234567890.1234567890BD AS d,
  float('nan') AS f, double('-infinity') AS dbl, date'0001-01-01' AS day,
  timestamp'1883-11-18 12:00:00.000001+00' AS at, timestamp_ntz'2024-03-31 02:30:00.5' AS wall,
  array('a"b', NULL, '', 'NULL', 'c\\\\d,{}') AS tags, array(1.5D, double('nan'), NULL) AS ds,
  array(X'01', NULL) AS bins,
  array(double('4.9E-324'), 1.7976931348623157E308D, -0.0D, 0.1D) AS ends,
  array(float('1.4E-45'), float('3.4028235E38'), float('0.1')) AS fends,
  array(timestamp'2024-01-01 00:00:00.25+00') AS ats,
  named_struct(
    'x', 1, 'y', CAST(NULL AS STRING), 't', timestamp'2024-01-01 00:00:00.000001+00'
  ) AS st,
  map('k', 1.50BD) AS m, array(array(1, 2), array(3)) AS nested,
  parse_json('{"a": [1, null, "z"]}') AS v, NULL AS nothing"""
TYPED = {
    "s": 'ä"\\{}, NULL',
    "bin": "\\x00ff10",
    "flag": "true",
    "b": "1",
    "sh": "-2",
    "i": "3",
    "l": "9223372036854775807",
    "d": "12345678901234567890.1234567890",
    "f": "NaN",
    "dbl": "-Infinity",
    "day": "0001-01-01",
    "at": "1883-11-18 12:00:00.000001+00",
    "wall": "2024-03-31 02:30:00.5",
    "tags": '{"a\\"b",NULL,"","NULL","c\\\\d,{}"}',
    "ds": "{1.5,NaN,NULL}",
    "bins": '{"\\\\x01",NULL}',
    "ends": "{5e-324,1.7976931348623157e+308,-0,0.1}",
    "fends": "{1e-45,3.4028235e+38,0.1}",
    "ats": '{"2024-01-01 00:00:00.25+00"}',
    "st": '{"t": "2024-01-01T00:00:00.000001Z", "x": 1, "y": null}',
    "m": '{"k": 1.50}',
    "nested": "[[1, 2], [3]]",
    "v": '{"a": [1, null, "z"]}',
    "nothing": None,
}
CREATED = {
    "s": "text",
    "bin": "bytea",
    "flag": "boolean",
    "b": "smallint",
    "sh": "smallint",
    "i": "integer",
    "l": "bigint",
    "d": "numeric(30,10)",
    "f": "real",
    "dbl": "double precision",
    "day": "date",
    "at": "timestamp with time zone",
    "wall": "timestamp without time zone",
    "tags": "text[]",
    "ds": "double precision[]",
    "bins": "bytea[]",
    "ends": "double precision[]",
    "fends": "real[]",
    "ats": "timestamp with time zone[]",
    "st": "jsonb",
    "m": "jsonb",
    "nested": "jsonb",
    "v": "jsonb",
    "nothing": "text",
}


@SIZES
def test_every_type_arrives_as_it_was_and_null_as_null(target, spark, size):
    table = target()
    rows = spark.sql(TYPES)
    nothing = spark.range(1, size).selectExpr(
        "int(id) AS id",
        *[
            f"CAST(NULL AS {field.dataType.simpleString()}) AS {field.name}"
            for field in rows.schema.fields[1:]
        ],
    )
    table.write(rows.unionByName(nothing))
    types = dict(
        table.ask(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            f"WHERE attrelid = '{table.table}'::regclass AND attnum > 1"
        )
    )
    assert types == CREATED
    [found] = table.ask(
        f"SELECT {', '.join(f'{name}::text' for name in TYPED)} FROM {table.table} WHERE id = 0"
    )
    assert dict(zip(TYPED, found, strict=True)) == TYPED
    [[empty]] = table.ask(
        f"SELECT count(*) FROM {table.table} WHERE id > 0 "
        f"AND coalesce({', '.join(f'{name}::text' for name in TYPED)}) IS NULL"
    )
    assert empty == size - 1


def test_a_declared_type_is_the_columns_type(target, spark):
    kinds = {
        "doc": "jsonb",
        "u": "uuid",
        "code": "varchar(20)",
        "ip": "inet",
        "price": "numeric(10, 2)",
        "tags": "jsonb",
        "wall": "timestamp",
    }
    table = target(types=kinds)
    rows = spark.sql("""SELECT '{"a":1}' AS doc, '6f1b1c1e-0000-4000-8000-000000000001' AS u,
                        'x' AS code, '10.0.0.1' AS ip, 1.25D AS price, array('a', NULL) AS tags,
                        timestamp'2024-06-01 10:00:00+02' AS wall""")
    table.write(rows)
    table.prepare(rows)
    assert table.ask(
        "SELECT doc::text, u::text, code, host(ip), price::text, tags::text, wall::text "
        f"FROM {table.table}"
    ) == [
        (
            '{"a": 1}',
            "6f1b1c1e-0000-4000-8000-000000000001",
            "x",
            "10.0.0.1",
            "1.25",
            '["a", null]',
            "2024-06-01 08:00:00",
        )
    ]


@SIZES
def test_a_value_that_its_type_does_not_take_is_refused_with_the_columns_name_and_without_the_value(
    target, spark, size
):
    table = target(types={"u": "uuid", "code": "varchar(5)"})
    rows = spark.range(size).selectExpr(
        "'6f1b1c1e-0000-4000-8000-000000000001' AS u", "'fits' AS code"
    )
    table.prepare(rows)
    with pytest.raises(
        SinkError, match=r"'code' \(character varying\(5\), 1 row\(s\)\).*22001"
    ) as error:
        table.deliver(
            rows.union(spark.sql("SELECT '6f1b1c1e-0000-4000-8000-000000000001', 'private words'"))
        )
    assert "private" not in str(error.value)
    with pytest.raises(SinkError, match=r"'u' \(uuid, 1 row\(s\)\).*22P02") as error:
        table.deliver(rows.union(spark.sql("SELECT 'private', 'fits'")))
    assert "private" not in str(error.value)
    assert table.held("u") == Counter() and table.staging() == []


@SIZES
@pytest.mark.parametrize(
    "value",
    [
        "concat('a', char(0))",
        "array('b', concat(char(0), 'c'))",
        "named_struct('x', char(0))",
        "CAST(X'FF' AS STRING)",
    ],
    ids=["text", "array", "json", "no_utf8"],
)
def test_characters_that_postgres_cannot_store_are_refused_with_the_columns_name(
    target, spark, value, size
):
    table = target()
    rows = spark.range(size).selectExpr(
        "id", "'fine' AS note", f"CASE WHEN id = 1 THEN {value} END AS bad"
    )
    with pytest.raises(SinkError, match=r"^[^']*'bad' \([^']*, 1 row\(s\)\) has"):
        table.write(rows)
    assert table.held() == Counter()


def test_names_are_taken_exactly_as_they_are(target, spark, postgres):
    with postgres.connect() as client:
        client.execute('CREATE SCHEMA IF NOT EXISTS "Odd Schema"')
    names = ["select", "Mixed Case", 'a"quote', "per.cent%", "q?mark", "{brace}", "ünï", "n" * 63]
    table = target(
        table='"Odd Schema"."Table.1"',
        ledger='"Odd Schema"."the ledger"',
        mode="upsert",
        keys=["select", 'a"quote'],
        types={"Mixed Case": "varchar(9)"},
    )
    for size in (2, MANY):
        rows = (
            spark.range(size)
            .toDF("id")
            .selectExpr(*[f"concat(id, '-{n}') AS `{name}`" for n, name in enumerate(names)])
        )
        table.write(rows, batch=size)
    assert table.ask('SELECT * FROM "Odd Schema"."Table.1" WHERE "select" = \'1-0\'') == [
        tuple(f"1-{n}" for n in range(8))
    ]
    assert table.ask('SELECT count(*), sum(rows) FROM "Odd Schema"."the ledger"') == [(2, MANY + 2)]


@pytest.mark.parametrize(
    "sink",
    [
        {"table": "a.b.c"},
        {"table": "n" * 64},
        {"ledger": "n" * 64},
        {"columns": ["nope"]},
        {"keys": ["nope"], "mode": "upsert"},
        {"types": {"nope": "text"}},
    ],
)
def test_a_name_that_cannot_be_is_refused_before_anything_is_read(target, spark, sink):
    with pytest.raises(SpecError):
        target(**sink).prepare(orders(spark))


def test_a_column_name_that_postgres_would_cut_is_refused(target, spark):
    with pytest.raises(SpecError, match="63 bytes"):
        target().prepare(spark.range(1).toDF("ü" * 32))


def test_system_columns_are_written_only_where_they_are_listed(target, spark):
    rows = orders(spark, 2).selectExpr("*", "'r1' AS _run_id", "5L AS _batch_id")
    plain, listed = (
        target(),
        target(columns=["id", "_batch_id"], table="listed", ledger="listed_ledger"),
    )
    plain.write(rows)
    listed.write(rows)
    assert plain.held("*") == expected(2) and listed.held("*") == Counter([(0, 5), (1, 5)])


@pytest.mark.parametrize(
    ("ddl", "sink", "message"),
    [
        ("(id bigint)", {}, r"no column 'note'.*ADD COLUMN \"note\" text"),
        ("(id integer, note text)", {}, r"'id' is integer in the table.*types: \{id: integer\}"),
        ("(id bigint, note varchar(10))", {}, r"'note' is character varying\(10\)"),
        (
            "(id bigint, note varchar(10))",
            {"types": {"note": "varchar(20)"}},
            r"'note' is character varying\(10\) in the table and varchar\(20\) in the sink",
        ),
        ("(id bigint, note text)", {"types": {"note": "nosuchtype"}}, "nosuchtype"),
        ("(id bigint, note text, more int NOT NULL)", {}, "without 'more'"),
        (
            "(id bigint, note text)",
            {"mode": "upsert", "keys": ["id"]},
            "no unique index.*CREATE UNIQUE INDEX",
        ),
        (
            "(id bigint, note text, UNIQUE (id, note))",
            {"mode": "upsert", "keys": ["id"]},
            "no unique index",
        ),
        ("(id bigint GENERATED ALWAYS AS IDENTITY, note text)", {}, "428C9"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_before_anything_is_read(
    target, spark, ddl, sink, message
):
    table = target(**sink)
    table.run(f"CREATE TABLE {table.table} {ddl}")
    with pytest.raises(SinkError, match=message) as error:
        table.prepare(orders(spark))
    assert error.value.exit_code is ExitCode.TERMINAL
    assert table.ask("SELECT to_regclass(%s)::text", table.sink.ledger) == [(None,)]


def test_a_table_that_holds_more_than_the_rows_have_is_filled(target, spark):
    table = target(mode="upsert", keys=["id"], types={"note": "varchar(10)"})
    table.run(
        f"CREATE TABLE {table.table} (more int DEFAULT 7, id numeric(20, 0) UNIQUE, "
        "made text GENERATED ALWAYS AS ('x') STORED, note varchar(10))"
    )
    table.write(orders(spark, 1))
    assert table.held("more, id, note") == Counter([(7, 0, "n0")])


def test_a_view_is_refused(target, spark):
    table = target()
    table.run(f"CREATE VIEW {table.table} AS SELECT 1::bigint AS id, 'x' AS note")
    with pytest.raises(SinkError, match="not a table"):
        table.prepare(orders(spark))


def test_two_rows_of_one_key_in_a_batch_and_a_key_that_is_null_are_refused(target, spark):
    table = target(mode="upsert", keys=["id"])
    with pytest.raises(SinkError, match="same keys.*dedup.keys"):
        table.write(orders(spark).union(orders(spark)))
    with pytest.raises(SinkError, match=r"1 row\(s\) have a NULL"):
        table.write(spark.sql("SELECT CAST(NULL AS BIGINT) AS id, 'x' AS note"))
    assert table.held() == Counter()


def test_a_row_that_a_constraint_refuses_is_named_by_the_constraint_and_not_shown(target, spark):
    table = target()
    table.run(f"CREATE TABLE {table.table} (id bigint CONSTRAINT small CHECK (id < 2), note text)")
    with pytest.raises(SinkError, match="small.*23514"):
        table.write(orders(spark, 3, "private"))
    table.run(f"ALTER TABLE {table.table} DROP CONSTRAINT small, ADD UNIQUE (note)")
    with pytest.raises(SinkError, match="23505") as error:
        table.write(orders(spark, 2, "private").union(orders(spark, 2, "private")))
    assert "private" not in str(error.value)


def test_more_connections_than_the_server_takes_are_worth_another_try(target, spark):
    table = target()
    table.prepare(orders(spark))
    table.run(
        "CREATE ROLE few LOGIN PASSWORD 'pw-few' CONNECTION LIMIT 1; "
        "GRANT ALL ON SCHEMA public TO few"
    )
    table.run(f"GRANT ALL ON {table.table}, {table.sink.ledger} TO few")
    few = target(user="few", password="pw-few", partitions=4)
    with pytest.raises(TransientError, match="53300"):
        few.deliver(orders(spark, MANY))
    assert few.deliver(orders(spark)) == 3
    assert table.held() == expected()


def test_a_deadlock_is_worth_another_try(target, spark):
    table = target(mode="upsert", keys=["id"])
    table.write(orders(spark))
    with table.postgres.connect(autocommit=False) as other, ThreadPoolExecutor(1) as pool:
        other.execute("SET deadlock_timeout = '1h'")
        other.execute(f"UPDATE {table.table} SET note = 'other' WHERE id = 2")
        delivery = pool.submit(table.deliver, orders(spark), 1)
        table.wait_until_blocked()
        other.execute(f"UPDATE {table.table} SET note = 'other' WHERE id = 0")
        with pytest.raises(TransientError, match="40P01"):
            delivery.result()
        other.commit()
    assert table.deliver(orders(spark, 3, "new"), 1) == 3
    assert table.held() == expected(3, "new")


@pytest.fixture
def spark_log(spark):
    """A function that says what Spark has logged since the test began."""
    core = spark._jvm.org.apache.logging.log4j.core
    text = spark._jvm.java.io.StringWriter()
    appender = core.appender.WriterAppender.createAppender(None, None, text, "test", False, True)
    appender.start()
    root = spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    root.addAppender(appender)
    yield text.toString
    root.removeAppender(appender)


PASSWORD = "pass%word:/?#[]@ &"


@pytest.fixture
def stranger(target, postgres):
    """A user who may connect and nothing else."""
    with postgres.connect() as client:
        client.execute("DROP ROLE IF EXISTS stranger")
        client.execute(f"CREATE ROLE stranger LOGIN PASSWORD '{PASSWORD}'")


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ({"user": "stranger", "password": "not-" + PASSWORD}, "28P01"),
        ({"user": "stranger", "password": None}, "08004"),
        ({"user": "stranger", "password": PASSWORD}, "42501.*Grant"),
    ],
)
def test_a_user_who_may_not_is_refused_and_no_password_is_in_any_message(
    target, spark, stranger, sink, message, capfd, caplog
):
    table = target(**sink)
    with pytest.raises(SinkError, match=message) as error:
        table.prepare(orders(spark))
    out, err = capfd.readouterr()
    assert not [
        text
        for text in (str(error.value), repr(error.value), repr(table.sink), out, err, caplog.text)
        if PASSWORD in text
    ]


def test_spark_logs_neither_the_password_nor_a_value_of_a_row(target, spark, spark_log):
    table = target()
    table.prepare(orders(spark))
    bad = orders(spark, MANY).selectExpr(
        "id", "CASE WHEN id = 1 THEN concat('private', char(0)) ELSE note END AS note"
    )
    with pytest.raises(SinkError) as error:
        table.deliver(bad)
    assert "22021" in spark_log() or "invalid byte sequence" in spark_log()
    assert not [
        word
        for word in (table.sink.password, "private")
        for text in (str(error.value), spark_log())
        if word in text
    ]


def test_an_airflow_connection_is_enough(target, spark, postgres, stranger, monkeypatch):
    with postgres.connect() as client:
        client.execute("GRANT CREATE ON SCHEMA public TO stranger")
    text = {
        "conn_type": "postgres",
        "host": "127.0.0.1",
        "port": postgres.port,
        "login": "stranger",
        "password": PASSWORD,
        "schema": postgres.database,
    }
    monkeypatch.setenv(
        "AIRFLOW_CONN_WAREHOUSE", json.dumps({**text, "extra": {"sslmode": "disable"}})
    )
    table = target(connection="warehouse")
    assert table.write(orders(spark, MANY)) == MANY
    assert table.held() == expected(MANY)


@pytest.mark.parametrize(
    "url",
    [
        "jdbc:mysql://host/db?password=hush",
        "postgresql://me:hush@host/db",
        "jdbc:postgresql://me:hush@host/db",
        "jdbc:postgresql://h:no/db?password=hush",
    ],
)
def test_another_database_or_url_is_refused_without_showing_it(target, spark, url):
    with pytest.raises(SpecError, match="jdbc:postgresql://host:port/database") as error:
        target(url=url).prepare(orders(spark))
    assert "hush" not in str(error.value)
