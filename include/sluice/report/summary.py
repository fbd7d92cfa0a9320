"""What a report says in a sentence: the verdict, the next step, the order in which people want to
see rules.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..errors import ExitCode
from .model import COMMITS, BatchReport, Counts, Outcome, RuleResult, RunReport, StepReport
from .units import format_bytes, format_count, to_utc

FATES = ("written", "quarantined", "duplicate", "late")

_OUTCOME_ORDER = {Outcome.FAILED: 0, Outcome.ERROR: 1, Outcome.PASSED: 2}
_ON_FAIL_ORDER = {"stop": 0, "quarantine": 1, "warn": 2}
_STATUS_SENTENCES = {
    "failed": "The run failed. What was committed before stays; nothing was written twice.",
    "stopped by a rule": (
        "A stop rule refused a batch: nothing of it was written, and the checkpoint stayed where "
        "it was."
    ),
    "out of time": (
        "The time budget ended the run: every row read is accounted for, the rest waits for the "
        "next run."
    ),
    "nothing new": "Nothing new was waiting: no row was read and no table changed.",
}
_NEXT_STEPS = {
    ExitCode.TRANSIENT: (
        "Run it again: the cause may pass by itself, and Airflow retries it. What was committed "
        "is not written twice."
    ),
    ExitCode.TERMINAL: (
        "Mend what the message names, then run again: trying again alone will not help. What was "
        "committed is not written twice."
    ),
    ExitCode.STOPPED_BY_RULE: (
        "Mend the rows at the source, or change the rule in the pipeline's YAML, then run again: "
        "the same batch is read once more."
    ),
}

Tone = Literal["good", "warn", "bad", "idle"]


@dataclass(frozen=True)
class Verdict:
    """How the run went: a tone for the colour, a sentence for people."""

    tone: Tone
    sentence: str


def judge(report: RunReport) -> Verdict:
    """The verdict over a run; an unbalanced report is bad whatever its status says."""
    if not all(step.counts.balanced for step in report.steps):
        return Verdict(
            "bad",
            "The rows do not add up: a row has no fate, or two. Keep the landing files and the "
            "checkpoint, and report a defect.",
        )
    if report.status != "done":
        tones: dict[str, Tone] = {"nothing new": "idle", "out of time": "warn"}
        tone = tones.get(report.status, "bad")
        sentence = _STATUS_SENTENCES[report.status]
        return (
            Verdict("bad", f"{sentence} {_describe_rules(report)}")
            if report.blocks and tone != "bad"
            else Verdict(tone, sentence)
        )
    tone = (
        "bad"
        if report.blocks
        else "warn"
        if report.failed_rules or _needs_attention(report)
        else "good"
    )
    return Verdict(tone, f"Every row is accounted for. {_describe_rules(report)}")


def _needs_attention(report: RunReport) -> bool:
    return any(step.warnings or step.left_for_next_run for step in report.steps)


def _describe_rules(report: RunReport) -> str:
    rules = [rule for step in report.steps for rule in step.rules]
    failed = sum(rule.outcome is Outcome.FAILED for rule in rules)
    unknown = sum(rule.outcome is Outcome.ERROR for rule in rules)
    if not rules:
        return "No rule was checked."
    if not failed and not unknown:
        return "The one rule passed." if len(rules) == 1 else f"All {len(rules)} rules passed."
    parts = [f"{failed} of {len(rules)} rules failed"] if failed else []
    parts += (
        [
            f"{unknown} could not be evaluated"
            if failed
            else f"{unknown} of {len(rules)} rules could not be evaluated"
        ]
        if unknown
        else []
    )
    return f"{' and '.join(parts)}{'; downstream is held back' if report.blocks else ''}."


def next_step(report: RunReport) -> str:
    """What to do after a run that did not end well; empty when there is nothing to do."""
    return _NEXT_STEPS.get(report.exit_code, "")


def missing_rows(counts: Counts) -> int:
    """Rows that entered minus rows with a fate: above 0 lost, below 0 counted twice."""
    return counts.malformed + counts.made - sum(getattr(counts, fate) for fate in FATES)


def _describe_gap(counts: Counts) -> str:
    unread, unfated = (
        counts.read - counts.malformed - counts.filtered - counts.entered,
        missing_rows(counts),
    )
    parts = (
        [
            f"{format_count(abs(unread))} rows "
            + (
                "read but neither parsed nor malformed"
                if unread > 0
                else "parsed that were never read"
            )
        ]
        if unread
        else []
    )
    parts += (
        [
            f"{format_count(abs(unfated))} rows "
            f"{'without a fate' if unfated > 0 else 'with more than one fate'}"
        ]
        if unfated
        else []
    )
    return ", ".join(parts)


def balance_notes(counts: Counts) -> list[str]:
    """The sentences that go with a balance line: what is inside the fates, and what does not add
    up."""
    notes = []
    if not counts.balanced:
        notes.append(f"DOES NOT BALANCE: {_describe_gap(counts)}.")
    if counts.malformed:
        notes.append(
            f"{format_count(counts.malformed)} malformed: no parser could read them; their text is "
            "kept in quarantine, copies count as duplicates."
        )
    if counts.late_merged:
        notes.append(
            f"{format_count(counts.late_merged)} came behind the watermark and went through the "
            "same MERGE; each has its fate above."
        )
    return notes


def describe_input(step: StepReport) -> str:
    """What a step read: files and bytes, offsets of partitions, or commits of a table."""
    if not step.ranges:
        return (
            f"{format_count(step.files_read)} {'file' if step.files_read == 1 else 'files'}, "
            f"{format_bytes(step.bytes_read)}"
        )
    amount = format_count(sum(until - start for start, until in step.ranges.values()))
    if any(place.startswith(COMMITS) for place in step.ranges):
        return f"{amount} commits of a table"
    return (
        f"{amount} offsets in {format_count(len(step.ranges))} "
        f"{'partition' if len(step.ranges) == 1 else 'partitions'}"
    )


def sort_rules(rules: list[RuleResult]) -> list[RuleResult]:
    """Failed first, then could-not-evaluate, then passed; within each `stop` before `quarantine`
    before `warn`."""
    return sorted(
        rules,
        key=lambda rule: (_OUTCOME_ORDER[rule.outcome], _ON_FAIL_ORDER[rule.on_fail], rule.name),
    )


def event_range(batches: list[BatchReport]) -> tuple[datetime, datetime] | None:
    """First and last event time over batches, UTC; None when no batch saw one."""
    firsts = [to_utc(batch.event_time_min) for batch in batches if batch.event_time_min]
    lasts = [to_utc(batch.event_time_max) for batch in batches if batch.event_time_max]
    return (min(firsts), max(lasts)) if firsts and lasts else None


def list_tables(step: StepReport) -> list[tuple[str, str, int | None]]:
    """(role, path or empty, Delta version or None) of every table of a step."""
    places = {"target": step.target, "quarantine": step.quarantine}
    roles = list(places) + [role for role in step.versions if role not in places]
    return [(role, places.get(role, ""), step.versions.get(role)) for role in roles]
