"""The user's own Python as a sink."""

from typing import Literal

from .sink_kind import AnyModeSink, SinkKind


class ForeachSink(SinkKind):
    """A Python class with `open(partition, batch)`, `process(row)` and `close(error)`; called for
    each partition of a batch."""

    kind: Literal["foreach"]
    writer: str
    """`file.py:Class`, relative to the pipeline's YAML."""

    @property
    def place(self) -> str:
        """The class."""
        return self.writer


class ForeachBatchSink(AnyModeSink):
    """A Python function `(rows, token)`: the rows of a batch, and a text that is the same when the
    batch comes again."""

    kind: Literal["foreach_batch"]
    function: str
    """`file.py:function`, relative to the pipeline's YAML."""

    @property
    def place(self) -> str:
        """The function."""
        return self.function
