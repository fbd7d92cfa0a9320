"""`sluice show` and `sluice sql` over what real runs wrote: the rows that Spark sees, whoever reads
them."""

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import functions as F
from sluice.cli import app
from sluice.storage import Paths
from typer.testing import CliRunner

from tests.spark.shop import Shop, order


@pytest.fixture
def shop(tmp_path, monkeypatch) -> Shop:
    """A shop whose pipeline the command line finds."""
    shop = Shop(tmp_path / "shop")
    monkeypatch.setenv("SLUICE_PIPELINES", str(shop.folder))
    monkeypatch.setenv("SLUICE_ROOT", str(shop.root))
    return shop


def ask(*arguments: object) -> tuple[Counter, str]:
    """What a verb prints as JSON: its rows as a multiset, and what it says beside."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--format", "json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return Counter(tuple(map(str, row.values())) for row in rows), result.stderr


def alter(spark, table: str, *statements: str) -> None:
    for statement in statements:
        spark.sql(statement.replace("@", f"delta.`{table}`"))


def test_show_and_sql_print_the_rows_that_a_run_wrote(spark, shop):
    bad, broken = order(3, amount=-1.0), '{"order_id": "o4"'
    shop.land(order(1), order(1, amount=2.0), order(2, day=2, amount=0.5), bad, broken)
    assert shop.run().counts.written == 2
    rows, said = ask("show", "orders")
    first = [(amount, "2026-01-01T01:00:00Z", "o1", "None") for amount in ("1.0", "2.0")]
    second = ("0.5", "2026-01-02T02:00:00Z", "o2", "None")
    assert rows in [Counter([one, second]) for one in first]
    assert "orders.paid holds 2 row(s); 2 shown" in said
    assert "Spark" not in said
    refused, said = ask("show", "orders", "--quarantine")
    assert "orders.paid__quarantine holds 2 row(s); 2 shown" in said
    assert broken in {row[0] for row in refused}
    both = (
        "SELECT t.order_id, q.detail FROM paid t JOIN orders.paid__quarantine q ON q.detail <> ''"
    )
    assert ask("sql", both)[0].total() == 2


def test_rows_that_a_deletion_vector_takes_away_are_neither_shown_nor_counted(spark, shop):
    shop.land(*(order(n) for n in range(20)))
    shop.run()
    table = Paths.under(shop.root, "orders").table("paid")
    alter(
        spark,
        table,
        "ALTER TABLE @ SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
        "DELETE FROM @ WHERE order_id IN ('o3', 'o5', 'o8')",
        "UPDATE @ SET amount = 9 WHERE order_id = 'o4'",
    )
    log = "".join(file.read_text() for file in (Path(table) / "_delta_log").glob("*.json"))
    assert '"deletionVector":{' in log
    left = Counter(f"o{n}" for n in range(20) if n not in (3, 5, 8))
    rows, said = ask("show", "orders", "--limit", 18)
    assert Counter(row[2] for row in rows.elements()) == left
    assert "holds 17 row(s); 17 shown" in said
    assert "Spark" not in said
    few, _ = ask("show", "orders", "--limit", 16)
    assert few.total() == 16
    changed, _ = ask("sql", "SELECT order_id, amount FROM paid WHERE amount > 2 OR order_id = 'o3'")
    assert changed == Counter([("o4", "9.0")])


def test_a_deletion_vector_meets_its_rows_where_parts_of_a_file_are_passed_over(
    spark, tmp_path, shop
):
    """A file of many row groups, of which a condition leaves most out."""
    table = Paths.under(shop.root, "orders").table("paid")
    ids = spark.range(0, 200_000, 1, 1).select("id", F.sha2(F.col("id").cast("string"), 256))
    ids.toDF("id", "text").write.format("delta").option("parquet.block.size", 65_536).option(
        "delta.enableDeletionVectors", "true"
    ).save(table)
    alter(spark, table, "DELETE FROM @ WHERE id % 1000 = 7")
    found, _ = ask("sql", "SELECT id FROM paid WHERE id BETWEEN 150000 AND 150009")
    assert found == Counter([(str(n),) for n in range(150_000, 150_010) if n != 150_007])
    assert ask("sql", "SELECT count(*), min(id) FROM paid")[0] == Counter([("199800", "0")])
    assert "holds 199,800 row(s); 20 shown" in ask("show", "orders")[1]


def test_spark_reads_what_the_way_without_a_jvm_does_not_and_says_so(spark, shop):
    shop.land(*(order(n, amount=n) for n in range(4)))
    shop.run()
    table = Paths.under(shop.root, "orders").table("paid")
    before, _ = ask("show", "orders")
    alter(
        spark,
        table,
        "ALTER TABLE @ ADD COLUMNS (more VARIANT, seen MAP<STRING, TIMESTAMP>)",
        "UPDATE @ SET more = parse_json('{\"a\": [1]}'), seen = map('k', at) WHERE order_id = 'o1'",
    )
    version = len(list((Path(table) / "_delta_log").glob("*.json")))
    rows, said = ask("show", "orders", "--where", "amount >= 0")
    assert "Spark is started, because orders.paid is written with variantType" in said
    assert Counter(row[:4] for row in rows.elements()) == before
    told = ("o1", '{"a":[1]}', "{'k': '2026-01-01T01:00:00Z'}")
    assert Counter(row[2:3] + row[4:] for row in rows.elements())[told] == 1
    joined, said = ask(
        "sql", "SELECT count(*) AS n FROM orders.paid a JOIN paid b USING (order_id)", "--limit", 5
    )
    assert (joined, "Spark is started" in said) == (Counter([("4",)]), True)
    wrong = CliRunner().invoke(app, ["sql", "SELECT nope FROM paid"])
    assert wrong.exit_code == 6
    assert "SQL: [UNRESOLVED_COLUMN" in wrong.stderr
    assert len(list((Path(table) / "_delta_log").glob("*.json"))) == version
    assert spark.sql("SHOW TABLES IN orders").where("NOT isTemporary").collect() == []
