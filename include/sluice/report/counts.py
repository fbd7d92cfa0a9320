"""Rows by fate, and the lines in which they add up."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, model_validator

from ..errors import UnbalancedReport
from ..spec.docstrings import add_descriptions

FATES = ("written", "quarantined", "duplicate", "late", "filtered")
"""What can become of a record; of a row behind the transform, any but the last."""


class Record(BaseModel):
    """A part of a report: fields that nobody declared are refused."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=add_descriptions)


@dataclass(frozen=True)
class Line:
    """One line of a balance: what came, and what became of it, each as name and rows."""

    came: dict[str, int]
    became: dict[str, int]
    late_groups: int = 0
    """Of the late: those that are groups, and not rows."""

    @property
    def total(self) -> int:
        """All that came."""
        return sum(self.came.values())

    @property
    def gap(self) -> int:
        """How many came of which nothing became; below 0, how many are told twice."""
        return self.total - sum(self.became.values())

    def __str__(self) -> str:
        came, became = (
            " + ".join(f"{rows:,} {name}" for name, rows in side.items())
            for side in (self.came, self.became)
        )
        late = self.became.get("late", 0)
        if self.late_groups:
            units = "groups" if self.late_groups == late else f"{self.late_groups:,} of them groups"
            became = became.replace(f"{late:,} late", f"{late:,} late ({units})")
        return f"{came} {'!=' if self.gap else '='} {became}"


class Counts(Record):
    """Rows by fate: each number is measured by what did it, none is what is left over.

    Two lines add up: `read = malformed + rejected + filtered + entered` says what became of
    each record, and `made + malformed + rejected = written + quarantined + duplicate + late` what
    became of each row. A transform that makes no rows has `made = entered`; then it is one line.
    """

    read: int = 0
    malformed: int = 0
    """Records no parser could read: part of `quarantined` (first copy) or `duplicate` (copies)."""
    rejected: int = 0
    """Records that the rules or the event time of their input kept out of the transform: part of
    `quarantined` (first copy) or `duplicate` (copies)."""
    filtered: int = 0
    """Records that the transform's WHERE left out."""
    entered: int = 0
    """Records that took part in the transform."""
    made: int = 0
    """Rows the transform made of them, with those its operators dropped as late."""
    written: int = 0
    quarantined: int = 0
    duplicate: int = 0
    late: int = 0
    replaced: int = 0
    """Rows of the table that lost against a row of this run: part of `duplicate`, one for one."""
    late_merged: int = 0
    """Rows behind the watermark that took part like all others: told apart, each
    also has its fate."""
    late_groups: int = 0
    """Part of `late`: groups that an aggregation dropped. It puts rows together by group before it
    looks at the watermark, so how many rows a group held is not known."""
    removed: int = 0
    """Rows of a replaced range that went when these came."""
    updated: int = 0
    """Part of `written`: groups that took the place of what they were before (output mode
    `update`)."""

    @model_validator(mode="before")
    @classmethod
    def _read_older(cls, value: object) -> object:
        """Reports of before say `parsed` for what enters the transform, and `entered` for what
        it makes; what its WHERE left out they do not tell."""
        if isinstance(value, dict) and "parsed" in value:
            value = {**value, "made": value.get("entered", 0), "entered": value["parsed"]}
            del value["parsed"]
        return value

    def __add__(self, other: "Counts") -> "Counts":
        sums = {name: getattr(self, name) + getattr(other, name) for name in Counts.model_fields}
        return Counts(**sums)

    @property
    def records(self) -> Line:
        """What became of each record."""
        rejected = ("rejected",) if self.rejected else ()
        return Line(self._of("read"), self._of("malformed", *rejected, "filtered", "entered"))

    @property
    def rows(self) -> Line:
        """What became of each row behind the transform."""
        rejected = ("rejected",) if self.rejected else ()
        return Line(
            self._of("made", "malformed", *rejected), self._of(*FATES[:-1]), self.late_groups
        )

    @property
    def lines(self) -> list[Line]:
        """One line where no row was made and none gathered, else that of the records and that of
        the rows."""
        if self.made == self.entered and not self.records.gap:
            return [Line(self._of("read"), self._of(*FATES), self.late_groups)]
        return [self.records, self.rows]

    @property
    def line(self) -> str:
        """`1,204 read = 1,180 written + 9 quarantined + 13 duplicate + 2 late + 0 filtered`, or
        two such lines behind a transform that makes rows."""
        return "; ".join(map(str, self.lines))

    @property
    def negative(self) -> dict[str, int]:
        """The numbers below 0: no count is."""
        return {name: rows for name, rows in self if rows < 0}

    @property
    def balanced(self) -> bool:
        """True when both lines add up and no number is negative."""
        return not self.records.gap and not self.rows.gap and not self.negative

    def check(self, where: str) -> None:
        """Raise UnbalancedReport when a row has no fate, or two, or a number is negative."""
        if not self.balanced:
            raise UnbalancedReport(
                "the fates of the rows do not add up to the rows read",
                where=where,
                value=self.model_dump(),
                do="Keep the landing files and the checkpoint, and report this as a defect",
            )

    def _of(self, *names: str) -> dict[str, int]:
        return {name: getattr(self, name) for name in names}
