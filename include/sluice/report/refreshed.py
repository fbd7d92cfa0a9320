"""What became of the groups of a step that is refreshed by them."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import UnbalancedReport
from .counts import Record
from .units import format_amount, format_bytes, format_percent

if TYPE_CHECKING:
    from .model import BatchReport


class RefreshReport(Record):
    """The groups of one batch or, summed, of a run: `touched = inserted + updated + deleted +
    unchanged`."""

    versions: dict[str, int] = {}
    """Of each input; the table equals the query over them."""
    whole: str = ""
    """Why all groups were computed; empty where only those were that new commits touch."""
    touched: int = 0
    """Groups that were computed."""
    inserted: int = 0
    """That the table did not have."""
    updated: int = 0
    """Of which it had other rows, all of which gave way."""
    deleted: int = 0
    """Of which nothing is left."""
    unchanged: int = 0
    """Of which it had the very rows that were computed; nothing of them was written."""
    rows_removed: int = 0
    """Of the table: those of groups that were updated or deleted."""
    rows_read: int = 0
    """Of the inputs, to compute the groups; a row that the query reads twice counts twice."""
    bytes_read: int = 0
    """Of the files that these rows lie in."""
    bytes_of_all: int = 0
    """Of all files of the inputs that are read commit by commit."""

    def check(self, where: str) -> None:
        """Raise UnbalancedReport where a group has no fate, or two, or a number is negative."""
        became = {n: getattr(self, n) for n in ("inserted", "updated", "deleted", "unchanged")}
        if self.touched != sum(became.values()) or min(became.values()) < 0:
            raise UnbalancedReport(
                "what became of the groups does not add up to those that were computed",
                where=where,
                value={"touched": self.touched, **became},
                do="Keep the tables and the checkpoint, and report this as a defect",
            )


_COUNTED = (
    *("touched", "inserted", "updated", "deleted", "unchanged", "rows_removed"),
    *("rows_read", "bytes_read", "bytes_of_all"),
)


def sum_refreshed(batches: Sequence["BatchReport"]) -> RefreshReport | None:
    """The groups of a run's batches: the numbers summed, versions and reason of the last."""
    found = [batch.refresh for batch in batches if batch.refresh is not None]
    if not found:
        return None
    sums = {name: sum(getattr(one, name) for one in found) for name in _COUNTED}
    whole = next((one.whole for one in reversed(found) if one.whole), "")
    return found[-1].model_copy(update={**sums, "whole": whole})


def tell_refreshed(one: RefreshReport | None) -> Iterator[str]:
    """What became of the groups, what was computed, and what the table equals."""
    if one is None:
        return
    yield (
        f"Groups: {one.touched:,} touched = {one.inserted:,} inserted + {one.updated:,} updated + "
        f"{one.deleted:,} deleted + {one.unchanged:,} unchanged; "
        f"{format_amount(one.rows_removed, 'row')} of the table gave way."
    )
    of = f"{format_amount(one.rows_read, 'row')} in files of {format_bytes(one.bytes_read)}"
    if one.whole:
        yield f"All groups were computed, from {of}: {one.whole}."
    else:
        share = format_percent(one.bytes_read, one.bytes_of_all)
        yield (
            f"Only touched groups were computed, from {of}, {share} of the inputs' "
            f"{format_bytes(one.bytes_of_all)}."
        )
    at = ", ".join(f"{name} at version {version:,}" for name, version in one.versions.items())
    amount = format_amount(len(one.versions), "input")
    yield f"The table equals the query over its {amount}: {at}."
