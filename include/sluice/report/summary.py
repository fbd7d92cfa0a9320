"""What stands beside the numbers of a report: sentences on what they hold, and the order in which
people want to see rules and tables.
"""

from datetime import datetime

from .counts import Counts
from .model import BatchReport, Outcome, RuleResult, StepReport
from .ranges import COMMITS
from .units import format_amount, format_bytes, format_count, to_utc
from .verdict import describe_gaps

_OUTCOME_ORDER = {Outcome.FAILED: 0, Outcome.ERROR: 1, Outcome.PASSED: 2}
_ON_FAIL_ORDER = {"stop": 0, "quarantine": 1, "warn": 2}


def balance_notes(counts: Counts) -> list[str]:
    """The sentences that go with a balance: what does not add up, and what its numbers hold."""
    notes = []
    if not counts.balanced:
        notes.append(f"DOES NOT BALANCE: {'; '.join(describe_gaps(counts))}.")
    if counts.malformed:
        notes.append(
            f"{format_count(counts.malformed)} malformed: no parser could read them; their text "
            "is kept in quarantine, copies count as duplicates."
        )
    if counts.filtered:
        notes.append(
            f"{format_count(counts.filtered)} filtered: the transform's WHERE left them out; they "
            "are in no table."
        )
    if counts.late_merged:
        notes.append(
            f"{format_count(counts.late_merged)} came behind the watermark and took part like all "
            "others; each has its fate above."
        )
    if groups := counts.late_groups:
        told = f"{format_amount(groups, 'late group')}, not rows: an aggregation"
        notes.append(f"{told} dropped what came behind the watermark after it had gathered it.")
    if counts.updated:
        changed = format_amount(counts.updated, "group")
        notes.append(f"Of the written rows, {changed} took the place of what they were before.")
    if counts.removed:
        rows = format_amount(counts.removed, "row")
        notes.append(f"{rows} of the range were removed, and these came in their place.")
    return notes


def list_warnings(step: StepReport) -> list[str]:
    """What a person should know of a step and of its batches, each once."""
    of_batches = (warning for batch in step.batches for warning in batch.warnings)
    return list(dict.fromkeys([*step.warnings, *of_batches]))


def describe_input(step: StepReport) -> str:
    """What a step read: files and bytes, offsets of partitions, or commits of a table."""
    if not step.ranges:
        return f"{format_amount(step.files_read, 'file')}, {format_bytes(step.bytes_read)}"
    amount = format_count(sum(until - start for start, until in step.ranges.values()))
    if any(place.startswith(COMMITS) for place in step.ranges):
        return f"{amount} commits of a table"
    return f"{amount} offsets in {format_amount(len(step.ranges), 'partition')}"


def sort_rules(rules: list[RuleResult]) -> list[RuleResult]:
    """Failed first, then could-not-evaluate, then passed; within each `stop` before `quarantine`
    before `warn`."""
    return sorted(
        rules,
        key=lambda rule: (_OUTCOME_ORDER[rule.outcome], _ON_FAIL_ORDER[rule.on_fail], rule.name),
    )


def count_passed(rules: list[RuleResult]) -> int:
    """Rules that values came to, and that none of them broke."""
    return sum(rule.outcome is Outcome.PASSED and not rule.unmet for rule in rules)


def event_range(batches: list[BatchReport]) -> tuple[datetime, datetime] | None:
    """First and last event time over batches, UTC; None when no batch saw one."""
    firsts = [to_utc(batch.event_time_min) for batch in batches if batch.event_time_min]
    lasts = [to_utc(batch.event_time_max) for batch in batches if batch.event_time_max]
    return (min(firsts), max(lasts)) if firsts and lasts else None


def changes_rows(batches: list[BatchReport]) -> bool:
    """True where a transform made other rows of the records, so that the two do not add up."""
    return any(batch.counts.made != batch.counts.entered for batch in batches)


def list_tables(step: StepReport) -> list[tuple[str, str, int | None]]:
    """(role, path or empty, Delta version or None) of every table of a step."""
    places = {"target": step.target, "quarantine": step.quarantine}
    roles = list(places) + [role for role in step.versions if role not in places]
    return [(role, places.get(role, ""), step.versions.get(role)) for role in roles]
