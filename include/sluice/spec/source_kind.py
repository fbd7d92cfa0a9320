"""What every kind of source answers for itself, so that nobody has to ask which kind it is."""

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from ..storage.paths import Paths
from .model import Needs, Options, Spec
from .quantities import Share
from .spark_settings import why_refused

_BOUNDS = {"maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger"}
"""Spark's own options that bound a batch, in lower case."""


class MalformedLimit(Spec):
    """How many of the records may be malformed."""

    share: Share
    """Of the records that were read: `5 %`."""
    on_fail: Literal["warn", "stop"] = "warn"
    """`warn` judges a run as a whole; `stop` refuses a batch with more before anything of it is
    written, and leaves the checkpoint before it."""


class SourceKind(Needs):
    """A kind of source; what it leaves unsaid is as it is for most."""

    kind: str

    @property
    def continuous(self) -> bool:
        """True where Spark's continuous trigger reads it."""
        return False

    @property
    def declared(self) -> dict[str, str]:
        """Its columns and their types, as far as the file says them."""
        return {}

    @property
    def keeps_rescued(self) -> bool:
        """True where fields outside the schema are kept in `_rescued`."""
        return False

    @property
    def refuses_unknown(self) -> bool:
        """True where a field outside the schema refuses the batch."""
        return False

    @property
    def malformed_limit(self) -> MalformedLimit | None:
        """How many records may be malformed; None where any number may."""
        return None

    @property
    def chooses_by_date(self) -> bool:
        """True where the range of a backfill says what is read, not only which rows are kept."""
        return False

    @property
    def queue(self) -> str | None:
        """URL of the queue that names to a run what is new; None where it is found by looking."""
        return None

    @property
    def reads_changes(self) -> bool:
        """True where rows that were changed or deleted come as well."""
        return False

    @property
    def outlives_deletes(self) -> bool:
        """True where rows that are deleted in a table do not stop the stream that reads it."""
        return False

    @property
    def reads_step(self) -> str | None:
        """The earlier step whose target is read; None for what other programs write."""
        return None

    @property
    def why_trial(self) -> str:
        """Why only a trial reads it, and why nothing can read it again; empty for most."""
        return ""

    @property
    def why_not_static(self) -> str:
        """Why it cannot be read as a whole in each run; empty for what can."""
        return (
            f"only a table or a topic can be static, and the source is {self.kind}; leave `static` "
            "out"
        )

    @property
    def why_only_static(self) -> str:
        """Why it cannot be read record by record; empty for what can."""
        return ""

    def place(self, paths: Paths) -> str:
        """Where it lies as far as Spark has to be told; empty where it knows that by itself."""
        return ""

    def reads(self, paths: Paths) -> frozenset[str]:
        """The places that it reads from, as far as a step of the same pipeline may write there."""
        return frozenset()

    def in_one_batch(self) -> Self:
        """The source as it is read where all that waits has to come in one batch."""
        return self


class BoundedSource(SourceKind):
    """A source that Spark reads batch by batch, each no larger than some fields say."""

    bounds: ClassVar[tuple[str, ...]] = ()
    """The fields that bound a batch."""
    options: Options = {}
    """Spark's own reader options, passed through as written."""
    refused: ClassVar[dict[str, str]] = {}
    """Options in lower case -> why a pipeline cannot have them."""
    own_fields: ClassVar[dict[str, str]] = {}
    """Options in lower case -> the field that says it, which the engine has to know as well."""

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        for name in self.options:
            if why := self.refused.get(name.lower()) or why_refused(name):
                raise ValueError(
                    f"option {name} does not go with runs that end: {why}; leave it out"
                )
            if field := self.own_fields.get(name.lower()):
                raise ValueError(
                    f"option {name} has a field of its own, which the probe and the report know as "
                    f"well; write {field} in its place"
                )
        return self

    @property
    def is_bounded(self) -> bool:
        """Whether something says how large a batch may be."""
        given = any(getattr(self, name) is not None for name in self.bounds)
        return given or any(name.lower() in _BOUNDS for name in self.options)

    def in_one_batch(self) -> Self:
        """The source without bounds."""
        options = {name: v for name, v in self.options.items() if name.lower() not in _BOUNDS}
        return self.model_copy(update={**dict.fromkeys(self.bounds), "options": options})
