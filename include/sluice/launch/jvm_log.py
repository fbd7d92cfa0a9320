"""What a JVM prints as it starts and runs is of use only when something went wrong."""

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
    """Keep silent what a JVM prints during the block; nothing where the user chose a file for it.

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
