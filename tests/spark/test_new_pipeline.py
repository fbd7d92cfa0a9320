"""What `sluice new` writes is a pipeline whose test passes as it is."""

import os
import subprocess
import sys


def test_the_test_that_new_writes_passes(tmp_path):
    for folder in ("include/pipelines", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    env = os.environ | {"SLUICE_PROJECT": str(tmp_path)}

    def python(*command):
        return subprocess.run(
            [sys.executable, "-m", *command],
            cwd=tmp_path,
            env={key: value for key, value in env.items() if not key.startswith("PYSPARK")},
            capture_output=True,
            text=True,
            timeout=300,
        )

    written = python("sluice.cli", "new", "clicks")
    assert written.returncode == 0, written.stderr
    tested = python("pytest", "-q", "tests/pipelines/test_clicks.py")
    assert tested.returncode == 0, tested.stdout
    assert "1 passed" in tested.stdout
