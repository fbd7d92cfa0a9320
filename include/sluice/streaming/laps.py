"""How long the parts of a batch took, one after the other."""

import time
from typing import Literal, get_args

Part = Literal["parse, rules", "dedup", "write", "compare", "sinks"]
PARTS = get_args(Part)
"""In their order. Rows are parsed, judged and counted in one pass; `compare` looks for copies that
differ; `sinks` are those of a step without a target."""


class Laps:
    """A watch that is read at the end of each part. `seconds`: by part."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = self._since = time.monotonic()

    @property
    def total(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._began

    def end(self, part: Part) -> None:
        """A part is over, and the next one begins."""
        now = time.monotonic()
        self.seconds[part] = now - self._since
        self._since = now
