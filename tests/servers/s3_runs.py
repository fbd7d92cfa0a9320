"""Runs pipelines on S3 one after the other in one session, in a process of its own.

The S3 client is a jar of 686 MB that other tests' session has no place for.
`python -m tests.servers.s3_runs FILE`: settings are those of this pipeline; a RunRequest a line in,
its RunReport a line out.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.report import RunReport
from sluice.spec import RunRequest, load_pipeline

from tests.spark.conftest import INTERPRETED

_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_MARK = "report: "


class S3Runs:
    """The process, as a test sees it."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process

    def run(self, spec: Path, root: str) -> RunReport:
        """Run a pipeline once; its report must balance."""
        self._process.stdin.write(
            RunRequest(pipeline=str(spec), root=root).model_dump_json() + "\n"
        )
        self._process.stdin.flush()
        line = next(line for line in self._process.stdout if line.startswith(_MARK))
        report = RunReport.model_validate_json(line.removeprefix(_MARK))
        report.check()
        return report


@contextmanager
def start_runs(spec: Path, log: Path) -> Iterator[S3Runs]:
    """Start the process; it ends with the block."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.s3_runs", str(spec)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        yield S3Runs(process)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(60)


def _serve(spec: str) -> None:
    from sluice.launch import spark_settings
    from sluice.runner import run_pipeline
    from sluice.spark.session import open_session

    settings = spark_settings(load_pipeline(spec), 0, root="/tmp")  # noqa: S108 (a name that is no bucket's; nothing is written there)
    with open_session(settings | INTERPRETED) as spark:
        for line in sys.stdin:
            report = run_pipeline(RunRequest.model_validate_json(line))
            spark.conf.unset(_MANAGER)  # of a root on S3; the next may be a folder
            print(f"{_MARK}{report.model_dump_json()}", flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
