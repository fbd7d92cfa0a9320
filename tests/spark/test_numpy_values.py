"""Values of numpy are taken where there are some, and where there are none nothing loads numpy, or
pandas, to find out."""

import subprocess
import sys

import pytest

SESSION = """
import sys
from pyspark.sql import functions as F
from sluice.setup.jars import jar_paths
from sluice.spark.session import open_session
settings = {"spark.master": "local[1]", "spark.ui.enabled": "false",
  "spark.driver.extraClassPath": ":".join(map(str, jar_paths("core")))}
with open_session(settings) as spark:
    def take(*values):
        return [*spark.range(1).select(*map(F.lit, values)).collect()[0]]
"""
PLAIN = """
    assert take(7, "a", None, 0.5, True) == [7, "a", None, 0.5, True]
    print([name for name in ("numpy", "pandas", "pyarrow", "unittest") if name in sys.modules])
"""
NUMPY = """
    take(1)
    import numpy as np
    assert take(np.int64(7), np.float64(0.5), np.array([1, 2])) == [7, 0.5, [1, 2]]
    print("pandas" in sys.modules)
"""
TESTING = """
    take(1)
    from pyspark.testing import assertDataFrameEqual
    from pyspark.testing.utils import have_numpy, have_pandas
    assertDataFrameEqual(spark.range(2), spark.range(2))
    print(have_numpy, have_pandas)
"""


@pytest.mark.parametrize(
    ("told", "wanted"),
    [(PLAIN, "[]"), (NUMPY, "False"), (TESTING, "True True")],
    ids=["plain values load nothing", "numpy's are taken", "the test utilities are there"],
)
def test_of_a_session(told, wanted):
    made = subprocess.run([sys.executable, "-c", SESSION + told], capture_output=True, text=True)
    assert made.stdout.splitlines()[-1:] == [wanted], made.stderr
