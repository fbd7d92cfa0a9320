"""What `sluice verify` found: a step's table against the query over what it was computed from."""

from collections.abc import Iterator

from .counts import Record
from .units import format_amount, format_count, printable


class Difference(Record):
    """A group whose rows are not those that the query makes."""

    group: str
    """Its columns and values; none of a column marked `pii`."""
    missing: int
    """Rows that the query makes and the table does not hold."""
    surplus: int
    """Rows that the table holds and the query does not make."""


class Verification(Record):
    """One look at one step's table."""

    step: str
    versions: dict[str, int]
    """Of each input, by the table's last commit."""
    version: int
    """Of the table."""
    share: float = 1.0
    """Of the groups that were compared."""
    rows: int = 0
    """That the query makes of these."""
    missing: int = 0
    surplus: int = 0
    groups: int = 0
    """Of which rows differ."""
    samples: list[Difference] = []
    """The first of them."""

    @property
    def equal(self) -> bool:
        """True where the table holds every row as often as the query makes it."""
        return not self.groups


def tell_verified(one: Verification) -> Iterator[str]:
    """The verdict, and which groups differ."""
    at = ", ".join(f"{name} at version {version:,}" for name, version in one.versions.items())
    of = "" if one.share >= 1 else f" in {one.share:.4%} of its groups"
    if one.equal:
        yield (
            f"{one.step}: {format_amount(one.rows, 'row')}{of}, equal to the query over {at} "
            f"(table at version {one.version:,})"
        )
        return
    yield (
        f"{one.step}: DIFFERS from the query over {at} (table at version {one.version:,}): of "
        f"{format_amount(one.rows, 'row')}{of} {format_count(one.missing)} are missing, and "
        f"{format_count(one.surplus)} are too many, in {format_amount(one.groups, 'group')}"
    )
    for sample in one.samples:
        named = printable(sample.group)
        yield f"  {named}: {sample.missing:,} missing, {sample.surplus:,} too many"
    if one.groups > len(one.samples):
        yield f"  ... and {format_amount(one.groups - len(one.samples), 'more group')}"
