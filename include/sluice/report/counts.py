"""Rows by fate, and whether they add up."""

from pydantic import BaseModel, ConfigDict, model_validator

from ..errors import UnbalancedReport


class Record(BaseModel):
    """A part of a report: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Counts(Record):
    """Rows by fate: each number is measured by what did it, none is what is left over.

    Two lines add up: `read = malformed + filtered + entered` says what became of each record, and
    `malformed + made = written + quarantined + duplicate + late` what became of each row. A
    transform that makes no rows has `made = entered`, and the two are one line.
    """

    read: int = 0
    malformed: int = 0
    """Records no parser could read: part of `quarantined` (first copy) or `duplicate` (copies)."""
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
    """Rows behind the watermark that went through the MERGE like all others: told apart, each
    also has its fate."""
    removed: int = 0
    """Rows of a replaced range that went when these came."""

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
    def fated(self) -> int:
        """Rows that have one of the four fates behind the transform."""
        return self.written + self.quarantined + self.duplicate + self.late

    @property
    def balanced(self) -> bool:
        """True when both lines add up and no number is negative."""
        whole = self.read == self.malformed + self.filtered + self.entered
        negative = any(getattr(self, name) < 0 for name in Counts.model_fields)
        return whole and self.malformed + self.made == self.fated and not negative

    @property
    def line(self) -> str:
        """`1,204 read = 1,180 written + 9 quarantined + 13 duplicate + 2 late + 0 filtered`, or
        two such lines behind a transform that makes rows."""
        fates = (
            f"{self.written:,} written + {self.quarantined:,} quarantined + "
            f"{self.duplicate:,} duplicate + {self.late:,} late"
        )
        if self.made == self.entered:
            return f"{self.read:,} read = {fates} + {self.filtered:,} filtered"
        records = f"{self.malformed:,} malformed + {self.filtered:,} filtered"
        made = f"{self.made:,} made + {self.malformed:,} malformed"
        return f"{self.read:,} read = {records} + {self.entered:,} entered; {made} = {fates}"

    def check(self, where: str) -> None:
        """Raise UnbalancedReport when a row has no fate, or two, or a number is negative."""
        if not self.balanced:
            raise UnbalancedReport(
                "the fates of the rows do not add up to the rows read",
                where=where,
                value=self.model_dump(),
                do="Keep the landing files and the checkpoint, and report this as a defect",
            )
