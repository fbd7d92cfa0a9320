"""What tasks cost is asked of Spark where they do not run in our own processes."""

from sluice.spark.executors import executor_cost, sum_task_seconds


def test_the_cpu_time_of_every_task_is_summed(spark):
    before = sum_task_seconds(spark)
    spark.range(0, 3_000_000, 1, 4).selectExpr("sum(hash(id))").collect()
    assert sum_task_seconds(spark) > before


def test_tasks_of_a_local_master_are_not_counted_twice(spark):
    assert executor_cost(spark) == {}


def test_tasks_of_a_cluster_are_told_apart(spark, monkeypatch):
    monkeypatch.setattr(spark.sparkContext, "master", "spark://host:7077")
    assert float(executor_cost(spark)["executor_core_seconds"]) > 0
