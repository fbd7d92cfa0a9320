"""Rows of a batch that are kept, and read more than once."""

import pytest
from sluice.spark.kept import FEW_ROWS, gather, keep_rows


@pytest.mark.parametrize(("rows", "shuffled"), [(FEW_ROWS, False), (FEW_ROWS + 1, True)])
def test_few_kept_rows_are_counted_by_key_without_a_shuffle(spark, rows, shuffled):
    with keep_rows(spark.range(20).selectExpr("id % 4 AS key").repartition(4)) as kept:
        counted = gather(kept, rows).groupBy("key").count()
        plan = counted._jdf.queryExecution().executedPlan().toString()
        assert ("Exchange" in plan) == shuffled
        assert sorted(map(tuple, counted.collect())) == [(key, 5) for key in range(4)]
