"""Every source with every sink, against the real thing.

One run a source writes all sinks, and each cell of the table in the docs is looked at.
"""

import json
import re
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from sluice.storage import PROJECT

from tests.spark.factories import Project

SOURCES, SINKS = (
    ("files", "kafka", "table"),
    ("delta", "kafka", "jdbc", "files", "foreach", "foreach_batch", "console", "memory"),
)
FIELDS = {"id": "string", "n": "bigint", "at": "timestamp"}
WANTED = Counter([("o1", 1), ("o2", 2)])
CODE = """
class Writer:
    def open(self, partition, batch):
        self.file = open({place!r}, "a")
    def process(self, row):
        self.file.write(f"{{row.id}} {{row.n}}\\n")
    def close(self, error):
        self.file.close()

def write(rows, token):
    with open({other!r}, "a") as file:
        file.writelines(f"{{row.id}} {{row.n}}\\n" for row in rows.collect())
"""


def order(number: int) -> str:
    return json.dumps({"id": f"o{number}", "n": number, "at": "2026-01-01T00:00:00Z"})


@pytest.fixture(scope="module")
def run(spark, kafka_broker, postgres, tmp_path_factory):
    """run(source) -> the pipeline after one run that wrote every sink; each source is run once.

    Beside it what the run printed, and the names of its places.
    """
    done: dict[str, tuple[Project, str]] = {}

    def run_once(source: str, capsys) -> tuple[Project, str]:
        if source in done:
            return done[source]
        folder, name = tmp_path_factory.mktemp(source), f"matrix_{source}"
        (folder / "code.py").write_text(
            CODE.format(place=str(folder / "foreach"), other=str(folder / "foreach_batch"))
        )
        topic = kafka_broker.create_topic(f"{name}_out")
        login = {"url": postgres.jdbc_url, "user": postgres.user, "password": "${MATRIX_PASSWORD}"}
        sinks = [
            {"kind": "delta"},
            {"kind": "kafka", "servers": kafka_broker.servers, "topic": topic},
            {"kind": "jdbc", "table": name, **login},
            {"kind": "files", "path": "out", "format": "parquet"},
            {"kind": "foreach", "writer": "code.py:Writer"},
            {"kind": "foreach_batch", "function": "code.py:write"},
            {"kind": "console"},
            {"kind": "memory", "name": name},
        ]
        step = {
            "event_time": {"column": "at"},
            "dedup": {"keys": ["id"], "within": "2 days"},
            "sink": sinks,
        }
        project = Project(spark, folder, _make_source(source, folder), step)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MATRIX_PASSWORD", postgres.password)
            report = project.run()
        assert report.error is None
        done[source] = project, capsys.readouterr().out
        return done[source]

    def _make_source(source: str, folder: Path) -> dict:
        lines = [order(1), order(2), order(2)]
        if source == "kafka":
            topic = kafka_broker.create_topic("matrix_in")
            kafka_broker.produce(topic, lines)
            return {
                "kind": "kafka",
                "servers": kafka_broker.servers,
                "subscribe": topic,
                "format": "json",
                "schema": FIELDS,
            }
        if source == "files":
            (folder / "landing").mkdir()
            (folder / "landing" / "1.json").write_text("\n".join(lines) + "\n")
            return {"kind": "files", "format": "json", "schema": FIELDS}
        rows = spark.read.schema("id string, n bigint, at timestamp").json(
            spark.sparkContext.parallelize(lines)
        )
        rows.write.format("delta").save(str(folder / "upstream"))
        return {"kind": "table", "path": str(folder / "upstream")}

    return run_once


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("source", SOURCES)
def test_cell(run, spark, kafka_broker, postgres, capsys, source, sink):
    project, printed = run(source, capsys)
    read = {
        "delta": partial(_rows, project),
        "kafka": partial(_sent, kafka_broker, source),
        "jdbc": partial(_table, postgres, source),
        "files": lambda: Counter(
            (r.id, r.n) for r in spark.read.parquet(str(project.folder / "root" / "out")).collect()
        ),
        "foreach": partial(_noted, project, "foreach"),
        "foreach_batch": partial(_noted, project, "foreach_batch"),
        "console": partial(_printed, printed),
        "memory": lambda: Counter((r.id, r.n) for r in spark.table(f"matrix_{source}").collect()),
    }
    assert read[sink]() == WANTED


def _rows(project: Project) -> Counter:
    return project.rows("id", "n")


def _sent(kafka_broker, source: str) -> Counter:
    values = [json.loads(record.value) for record in kafka_broker.read(f"matrix_{source}_out")]
    return Counter((value["id"], value["n"]) for value in values)


def _table(postgres, source: str) -> Counter:
    with postgres.connect() as connection:
        return Counter(connection.execute(f"SELECT id, n FROM matrix_{source}").fetchall())


def _noted(project: Project, name: str) -> Counter:
    return Counter(
        (line.split()[0], int(line.split()[1]))
        for line in (project.folder / name).read_text().splitlines()
    )


def _printed(text: str) -> Counter:
    return Counter(
        (found[0], int(found[1])) for found in re.findall(r"\|\s*(o\d)\s*\|\s*(\d)\s*\|", text)
    )


def test_the_docs_name_the_test_of_every_cell():
    text = (PROJECT / "include" / "docs" / "sources_and_sinks.md").read_text()
    assert [
        f"test_cell[{source}-{sink}]"
        for source in SOURCES
        for sink in SINKS
        if f"test_cell[{source}-{sink}]" not in text
    ] == []
