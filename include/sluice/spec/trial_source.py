"""Sources that run in nothing but a trial, because nothing of theirs can be read again."""

from typing import Literal

from pydantic import Field

from .model import Options
from .source_kind import SourceKind

_WHY = {
    "rate": "rate makes rows as time passes and knows no availableNow, so no run is ever done",
    "rate-micro-batch": "rate-micro-batch makes rows for ever and keeps none of them, so no run is "
    "ever done",
}


class TrialSource(SourceKind):
    """A source that Spark opens by its kind and some options."""

    @property
    def reader_options(self) -> dict[str, str]:
        """As Spark calls them."""
        return {}


class RateSource(TrialSource):
    """Rows made by Spark itself, for trials: `timestamp` and `value`."""

    kind: Literal["rate", "rate-micro-batch"]
    rows: int = Field(default=10, ge=1)
    """Rows a second (`rate`) or a batch (`rate-micro-batch`)."""
    options: Options = {}

    @property
    def continuous(self) -> bool:
        """Batches are what `rate-micro-batch` is about."""
        return self.kind == "rate"

    @property
    def why_trial(self) -> str:
        """Time does not stop."""
        return _WHY[self.kind]

    @property
    def reader_options(self) -> dict[str, str]:
        """As Spark calls them."""
        rows = {"rate": "rowsPerSecond", "rate-micro-batch": "rowsPerBatch"}[self.kind]
        return {rows: str(self.rows), **self.options}


class SocketSource(TrialSource):
    """Lines of text from a TCP server, for trials: `value`."""

    kind: Literal["socket"]
    host: str = "127.0.0.1"
    port: int = Field(ge=1, le=65535)

    @property
    def why_trial(self) -> str:
        """What was sent is gone."""
        return "a socket cannot be read again after a crash, and knows no availableNow"

    @property
    def reader_options(self) -> dict[str, str]:
        """As Spark calls them."""
        return {"host": self.host, "port": str(self.port)}
