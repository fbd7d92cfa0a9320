"""What tasks cost is asked of Spark where they do not run in our own processes."""

import pytest
from sluice.launch import PARTITIONS
from sluice.spark import executors
from sluice.spark.executors import executor_cost, fit_to_executors, sum_task_seconds


def test_the_cpu_time_of_every_task_is_summed(spark):
    before = sum_task_seconds(spark)
    spark.range(0, 3_000_000, 1, 4).selectExpr("sum(hash(id))").collect()
    assert sum_task_seconds(spark) > before


def test_tasks_of_a_local_master_are_not_counted_twice(spark):
    assert executor_cost(spark) == {}


def test_tasks_of_a_cluster_are_told_apart(spark, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "master", "spark://host:7077")
    assert float(executor_cost(spark)["executor_core_seconds"]) > 0


@pytest.fixture
def cluster(spark, monkeypatch):
    """A session that takes itself for a cluster's, of which `come` says how many cores there are;
    its partitions are put back."""
    before = {name: spark.conf.get(name) for name in PARTITIONS}
    monkeypatch.setattr(spark.sparkContext, "master", "spark://host:7077")
    monkeypatch.setattr(executors, "PATIENCE", 1.0)
    come = iter([])

    def say(*cores: int, **conf: str):
        nonlocal come
        come = iter(cores)
        said = {name.replace("_", "."): value for name, value in conf.items()}
        monkeypatch.setattr(executors, "_said", lambda spark, name: said.get(name))
        monkeypatch.setattr(executors, "_count_cores", lambda spark: (next(come), 0.0))

    yield say
    for name, value in before.items():
        spark.conf.set(name, value)


def test_a_run_waits_for_as_many_cores_as_it_asked_for(spark, cluster):
    cluster(0, 2, 4, 8, spark_cores_max="8")
    fit_to_executors(spark, {})
    assert {spark.conf.get(name) for name in PARTITIONS} == {"8"}


def test_without_an_executor_in_time_and_with_those_that_come_by_need_there_are_many_parts(
    spark, cluster
):
    cluster(*[0] * 1000)
    fit_to_executors(spark, {PARTITIONS[1]: "7"})
    assert spark.conf.get(PARTITIONS[0]) == "64" != spark.conf.get(PARTITIONS[1])
    cluster(2, spark_dynamicAllocation_enabled="true")
    fit_to_executors(spark, {})
    assert spark.conf.get(PARTITIONS[1]) == "64"


def test_of_a_large_cluster_not_every_core_gets_a_part(spark, cluster):
    cluster(5000)
    fit_to_executors(spark, {})
    assert spark.conf.get(PARTITIONS[0]) == "200"


def test_a_batch_does_not_wait_for_executors_that_never_came(spark, cluster):
    cluster(6, 8, spark_cores_max="8")
    fit_to_executors(spark, {}, patience=0)
    assert spark.conf.get(PARTITIONS[0]) == "6"
