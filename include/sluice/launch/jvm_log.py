"""What a JVM prints as it starts and runs, and what Python logs, is of use only when something went
wrong."""

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

JVM_LOG = "SLUICE_JVM_LOG"
"""Environment variable: a file for what a JVM of ours prints; `/dev/stderr` shows it."""


@contextmanager
def divert_jvm_output(
    is_failure: Callable[[BaseException], bool], tell: Callable[[str], None]
) -> Iterator[None]:
    """Keep silent what a JVM prints and what Python logs during the block; nothing where the user
    chose a file for it.

    Args:
        is_failure: whether what the block raised means that something went wrong.
        tell: called with one sentence that says where the output is, after a failure.
    """
    if os.environ.get(JVM_LOG):
        yield
        return
    handle, name = tempfile.mkstemp(prefix="sluice-jvm-", suffix=".log")
    os.close(handle)
    log, failed = Path(name), False
    os.environ[JVM_LOG] = name
    try:
        with _divert_logging(name):
            yield
    except BaseException as error:
        failed = is_failure(error)
        raise
    finally:
        del os.environ[JVM_LOG]
        if failed and log.stat().st_size:
            tell(f"What Spark itself said: {log}")
        else:
            log.unlink()


@contextmanager
def _divert_logging(file: str) -> Iterator[None]:
    """Write warnings, Python's own among them, and worse to a file; Python else prints them."""
    handler, root = logging.FileHandler(file, delay=True), logging.getLogger()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)
        handler.close()
