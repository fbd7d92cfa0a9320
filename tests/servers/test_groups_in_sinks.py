"""Groups that change (output mode `update`) in PostgreSQL, a topic and the user's function: with a
Delta table before them, and without."""

import json
from collections import Counter

import pytest

from tests.servers.test_sinks_of_a_step import jdbc, select
from tests.spark.factories import Project

SOURCE = {
    "kind": "files",
    "format": "json",
    "schema": {"id": "string", "n": "bigint"},
    "max_files_per_batch": 1,
}
SUMS = "SELECT id, sum(n) AS n FROM source GROUP BY id"
FUNCTION = """
def take(rows, token):
    with open({place!r}, "a") as file:
        file.write(f"{{sorted((r.id, r.n) for r in rows.collect())}}\\n")
"""


def land(project: Project, name: str, **rows: int) -> None:
    project.land(name, "".join(json.dumps({"id": i, "n": n}) + "\n" for i, n in rows.items()))


@pytest.mark.parametrize("behind_a_table", [True, False], ids=["behind_delta", "alone"])
def test_groups_reach_every_sink_whenever_they_change(
    spark, postgres, kafka_broker, tmp_path, monkeypatch, behind_a_table
):
    monkeypatch.setenv("PG_PASSWORD", postgres.password)
    name = f"groups_{behind_a_table}".lower()
    topic = kafka_broker.create_topic(name)
    (tmp_path / "t.sql").write_text(SUMS)
    (tmp_path / "f.py").write_text(FUNCTION.format(place=str(tmp_path / "got")))
    kafka = {"kind": "kafka", "servers": kafka_broker.servers, "topic": topic, "key": "id"}
    sinks = [
        jdbc(postgres, name, mode="upsert" if behind_a_table else "update", keys=["id"]),
        kafka | {"mode": "update"},
        {"kind": "foreach_batch", "function": "f.py:take"},
    ]
    delta = [{"kind": "delta", "mode": "update", "keys": ["id"]}] if behind_a_table else []
    project = Project(spark, tmp_path, SOURCE, {"transform": "t.sql", "sink": [*delta, *sinks]})
    land(project, "1.json", a=1, b=2)
    land(project, "2.json", a=4)
    assert project.run().error is None
    land(project, "3.json", b=8, c=1)
    assert project.run().error is None
    final = Counter([("a", 5), ("b", 10), ("c", 1)])
    assert select(postgres, name) == final
    records = [json.loads(record.value) for record in kafka_broker.read(topic)]
    assert Counter((r["id"], r["n"]) for r in records) == final + Counter([("a", 1), ("b", 2)])
    assert (tmp_path / "got").read_text().splitlines() == [
        "[('a', 1), ('b', 2)]",
        "[('a', 5)]",
        "[('b', 10), ('c', 1)]",
    ]
    if behind_a_table:
        assert project.rows("id", "n") == final
