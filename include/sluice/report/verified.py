"""What `sluice verify` found: a step's table against what its inputs give once more."""

from collections.abc import Iterator
from typing import Literal

from .counts import Record
from .units import format_amount, format_count, printable

_CAUSES = (
    "Somebody wrote beside the step, a backfill brought what the step had not read, its rules or "
    "its transform were edited since, or keys came with other content in a later run"
)


class Difference(Record):
    """A group, or a key, whose rows are not those that there should be."""

    group: str
    """Its columns and values; none of a column marked `pii`."""
    missing: int
    """Rows that there should be and the table does not hold."""
    surplus: int
    """Rows that the table holds and should not."""


class Verification(Record):
    """One look at one step's table."""

    step: str
    table: Literal["target", "quarantine", "late"] = "target"
    versions: dict[str, int] = {}
    """Of each input of a step with `groups`, by the table's last commit."""
    read: str = ""
    """Of any other step's target: the records by fate, as they were read once more."""
    batches: int = 1
    """In which they were read."""
    version: int = 0
    """Of the table; 0 where there is none."""
    share: float = 1.0
    """Of the groups that were compared."""
    rows: int = 0
    """That there should be."""
    missing: int = 0
    surplus: int = 0
    groups: int = 0
    """Of which rows differ."""
    samples: list[Difference] = []
    """The first of them."""

    @property
    def equal(self) -> bool:
        """True where the table holds every row as often as it should."""
        return not self.groups

    @property
    def name(self) -> str:
        """The step, and which of its tables where it is not the target."""
        return self.step if self.table == "target" else f"{self.step}, {self.table}"

    @property
    def amount(self) -> str:
        """`1,204 rows`."""
        of = "" if self.share >= 1 else f" in {self.share:.4%} of its groups"
        return f"{format_amount(self.rows, 'row')}{of}"

    @property
    def source(self) -> str:
        """What it was compared with."""
        at = ", ".join(f"{name} at version {number:,}" for name, number in self.versions.items())
        told = f" ({self.read})" if self.read else ""
        cut = f" in {self.batches:,} batches" if self.batches > 1 else ""
        return f"the query over {at}" if at else f"what its input gives once more{cut}{told}"


def tell_verified(one: Verification) -> Iterator[str]:
    """The verdict, and which groups differ."""
    if one.equal:
        yield f"{one.name}: {one.amount}, equal to {one.source}; table at version {one.version:,}"
        return
    yield f"{describe_difference(one)}; table at version {one.version:,}"
    for sample in one.samples:
        named = printable(sample.group)
        yield f"  {named}: {sample.missing:,} missing, {sample.surplus:,} too many"
    if one.samples and one.groups > len(one.samples):
        yield f"  ... and {format_amount(one.groups - len(one.samples), 'more group')}"
    if not one.versions:
        yield f"  {_CAUSES}"


def describe_difference(one: Verification) -> str:
    """How a table differs, in a sentence."""
    groups = f", in {format_amount(one.groups, 'group')}" if one.samples else ""
    return (
        f"{one.name} DIFFERS from {one.source}: of {one.amount} {format_count(one.missing)} are "
        f"missing, and {format_count(one.surplus)} are too many{groups}"
    )
