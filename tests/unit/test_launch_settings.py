"""Settings of Spark that hang on what a pipeline is made of, and on where it runs."""

from types import SimpleNamespace

import pytest
import yaml
from sluice.launch import jvm_flags, launcher_options, spark_settings
from sluice.launch import settings as launch
from sluice.spec import Pipeline, load_pipeline
from sluice.streaming.state_store import store_settings

DEBUGGING = "spark.python.sql.dataFrameDebugging.enabled"


@pytest.fixture
def pipeline(tmp_path, monkeypatch) -> Pipeline:
    def paths(*sets: str) -> list:
        return [tmp_path / f"{name}.jar" for name in sets]

    monkeypatch.setattr(launch, "jar_paths", paths)
    schema = {"id": "string"}
    source = {"kind": "kafka", "servers": "h:1", "subscribe": "t", "format": "json"}
    step = {"name": "s", "source": {**source, "schema": schema}, "sink": {"mode": "append"}}
    return Pipeline.model_validate({"name": "p", "steps": [step]})


def settings(pipeline: Pipeline, master: str, size: int = 0) -> dict[str, str]:
    return spark_settings(pipeline, size, master=master, root="/r")


def test_a_local_run_has_no_settings_of_executors(pipeline):
    assert not [name for name in settings(pipeline, "local[2]") if "executor" in name]


@pytest.mark.parametrize("master", ["spark://h:7077", "yarn", "k8s://https://h"])
def test_executors_get_the_jars_and_flags_beneath_those_of_the_site(pipeline, master):
    found = settings(pipeline, master)
    assert [jar.rsplit("/")[-1] for jar in found["spark.jars"].split(",")] == [
        "core.jar",
        "kafka.jar",
    ]
    assert "spark.executor.extraJavaOptions" not in found
    flags = found["spark.executor.defaultJavaOptions"]
    assert "-XX:TieredStopAtLevel=1" in flags and "GC" not in flags
    assert (
        "TieredStopAtLevel"
        not in settings(pipeline, master, 10**12)["spark.executor.defaultJavaOptions"]
    )
    standalone = master.startswith("spark:")
    assert ("spark.executor.extraClassPath" in found) == standalone


def test_what_a_pipeline_says_of_executors_wins(pipeline):
    said = {"spark.executor.defaultJavaOptions": "-Dx=1", "spark.locality.wait": "5s"}
    found = settings(pipeline.model_copy(update={"spark": said}), "yarn")
    assert {name: found[name] for name in said} == said


@pytest.mark.parametrize(
    ("heap", "room"), [(None, 400), ("8g", 400), ("1g", 256), ("512m", 128), ("600", 150)]
)
def test_new_rows_get_no_more_than_a_quarter_of_a_small_heap(pipeline, heap, room):
    said = {"spark.driver.memory": heap} if heap else {}
    found = settings(pipeline.model_copy(update={"spark": said}), "local[2]", 10**12)
    assert f" -XX:NewSize={room}m" in found["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize(("home", "told"), [("spark", True), ("my spark", False)])
def test_the_launcher_is_told_where_its_classes_are_where_sparks_script_can_pass_it_on(
    tmp_path, monkeypatch, home, told
):
    jar = tmp_path / home / "jars" / "spark-launcher_2.13-4.2.0.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / home))
    assert (f"-Xbootclasspath/a:{jar}" in launcher_options().split()) is told
    assert len(launcher_options().split()) == 2 + told
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setattr(jvm_flags, "spark_jars_folder", lambda: tmp_path / home / "jars")
    assert (str(jar) in launcher_options()) is told


@pytest.mark.parametrize(
    ("transform", "noted"), [(None, "false"), ("clean.sql", "false"), ("clean.py:clean", "true")]
)
def test_lines_of_code_are_noted_only_for_a_transform_in_python(
    tmp_path, monkeypatch, transform, noted
):
    monkeypatch.setattr(launch, "jar_paths", lambda *_: [])
    for name in ("clean.sql", "clean.py"):
        (tmp_path / name).touch()
    source = {"kind": "files", "path": "x", "format": "json", "schema": {"id": "string"}}
    step = {"name": "s", "source": source, "transform": transform, "sink": {"mode": "append"}}
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump({"name": "p", "steps": [step]}))
    assert spark_settings(load_pipeline(file), 0, root=str(tmp_path))[DEBUGGING] == noted


STATE = "spark.sql.streaming.stateStore"


@pytest.mark.parametrize(
    ("master", "asked", "megabytes"),
    [
        ("local[2]", {}, "768"),
        ("local[2]", {"spark.driver.memory": "16g"}, "4096"),
        ("local[2]", {"spark.driver.memory": "100m"}, "64"),
        ("yarn", {"spark.driver.memory": "16g"}, "256"),
        ("yarn", {"spark.executor.memory": "8g"}, "2048"),
    ],
)
def test_state_is_in_rocksdb_whose_memory_is_bounded_beside_the_heap_that_holds_it(
    pipeline, master, asked, megabytes
):
    found = settings(pipeline.model_copy(update={"spark": asked}), master)
    assert found[f"{STATE}.providerClass"].endswith(".RocksDBStateStoreProvider")
    assert found[f"{STATE}.rocksdb.changelogCheckpointing.enabled"] == "true"
    assert found[f"{STATE}.rocksdb.boundedMemoryUsage"] == "true"
    assert found[f"{STATE}.rocksdb.maxMemoryUsageMB"] == megabytes


@pytest.mark.parametrize(
    ("asked", "named", "provider", "version"),
    [
        ({}, None, "RocksDBStateStoreProvider", "2"),
        ({}, "hdfs", "HDFSBackedStateStoreProvider", "1"),
        ({f"{STATE}.checkpointFormatVersion": "1"}, "rocksdb", "RocksDBStateStoreProvider", "1"),
        ({f"{STATE}.providerClass": "org.x.Own"}, None, "Own", None),
        ({f"{STATE}.providerClass": "org.x.Own"}, "rocksdb", "RocksDBStateStoreProvider", "2"),
    ],
)
def test_a_step_names_its_store_before_the_settings_and_those_before_the_default(
    pipeline, asked, named, provider, version
):
    step = pipeline.steps[0].model_copy(update={"state_store": named})
    run = SimpleNamespace(pipeline=pipeline.model_copy(update={"spark": asked}))
    found = store_settings(run, step)
    assert found[f"{STATE}.providerClass"].rpartition(".")[2] == provider
    assert found.get(f"{STATE}.checkpointFormatVersion") == version
