"""The user's own Python as a sink."""

from typing import Literal

from .sink_kind import OutputMode, SinkKind


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


class ForeachBatchSink(SinkKind):
    """A Python function `(rows, token)`: the rows of a batch, and a text that is the same when the
    batch comes again."""

    kind: Literal["foreach_batch"]
    function: str
    """`file.py:function`, relative to the pipeline's YAML."""
    mode: OutputMode | None = None
    """Of a transform that aggregates: the groups that are closed (`append`), that changed
    (`update`), or all of them (`complete`) with each batch. By default what the other sinks ask
    for, else `append`."""

    @property
    def place(self) -> str:
        """The function."""
        return self.function

    @property
    def output_mode(self) -> OutputMode | None:
        """As written."""
        return self.mode

    @property
    def takes_whole(self) -> bool:
        """What it does with it is the user's."""
        return True
