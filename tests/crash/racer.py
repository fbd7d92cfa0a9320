"""A process that runs a pipeline whenever it is asked, over one Spark session.

In a race both runs start at once, not when their JVMs happen to be up.
"""

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sluice.errors import ExitCode
from sluice.spec import RunRequest
from sluice.storage import PROJECT

LEASE_SECONDS = "3"


class Racer:
    """The process, seen from the test.

    `length`: seconds of the newest run that did work and was left alone.
    """

    def __init__(self, log: Path) -> None:
        environment = {**os.environ, "SLUICE_LEASE_SECONDS": LEASE_SECONDS}
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.racer"],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                cwd=PROJECT,
                env=environment,
            )
        self.log, self.length, self._started, self._frozen = log, 0.0, 0.0, False

    def start(self, request: RunRequest) -> None:
        """Ask for a run."""
        self._process.stdin.write(request.model_dump_json().encode() + b"\n")
        self._started, self._frozen = time.monotonic(), False

    def is_running(self, seconds: float = 0.0) -> bool:
        """Wait for the end of the run, at most so long; True when it is still under way."""
        return not select.select([self._process.stdout], [], [], seconds)[0]

    def wait(self, timeout: float = 300.0) -> ExitCode:
        """How the run ended."""
        assert not self.is_running(timeout), (
            f"no end within {timeout} s:\n{self.log.read_text(errors='replace')[-3000:]}"
        )
        line = self._process.stdout.readline()
        assert line, f"the process ended:\n{self.log.read_text(errors='replace')[-3000:]}"
        code = ExitCode(int(line))
        if code is ExitCode.DONE and not self._frozen:
            self.length = time.monotonic() - self._started
        return code

    def freeze(self) -> None:
        """Stop the process and its JVM in their tracks, as a machine that sleeps does."""
        self._frozen = True
        os.killpg(self._process.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Let them go on."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def end(self) -> None:
        """End both."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def main() -> None:
    """Read one request a line; answer each with its exit code."""
    from sluice.runner import run_pipeline

    from tests.spark.conftest import open_test_session

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else is printed
    with tempfile.TemporaryDirectory() as warehouse:
        session = open_test_session(Path(warehouse))
        next(session)
        for line in sys.stdin:
            report = run_pipeline(RunRequest.model_validate_json(line))
            print(
                report.run_id,
                report.exit_code.name,
                report.error or "",
                file=sys.stderr,
                flush=True,
            )
            print(int(report.exit_code), file=answers)
        session.close()


if __name__ == "__main__":
    main()
