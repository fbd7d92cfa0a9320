"""How a run went, in a sentence, and what to do next."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ..errors import ExitCode
from .counts import Counts
from .model import Outcome, RuleResult, RunReport
from .units import format_amount, printable

_NEXT_STEPS = {
    ExitCode.TRANSIENT: "Run it again: the cause may pass by itself, and Airflow retries it. What "
    "was committed is not written twice.",
    ExitCode.TERMINAL: "Mend what the message names, then run again: trying again alone will not "
    "help. What was committed is not written twice.",
    ExitCode.STOPPED_BY_RULE: "Mend the rows at the source, or change the rule in the pipeline's "
    "YAML, then run again: the same batch is read once more.",
}
_UNDELIVERED = {
    ExitCode.TRANSIENT: "Run it again: the cause may pass by itself, and Airflow retries it. A run "
    "sends what a sink lacks, also when nothing is new.",
    ExitCode.TERMINAL: "Mend what the message names, then run again: a run sends what a sink "
    "lacks, also when nothing is new. `sluice give-up` takes a batch off the list.",
}
_JUDGED_TOO_LATE = (
    "These rows are in the table: mend or delete them there, or change the rule in the pipeline's "
    "YAML. The next run reads only what came after them."
)
_FAILED = "The run failed. What was committed before stays; nothing was written twice."
_NOTHING_YET = "No step has finished a batch yet, so there was nothing to compare."
_EQUAL = "Every table that was looked at holds the rows that its inputs give, each as often."
_EQUAL_IN_PART = (
    "Every table that was looked at holds the rows that its inputs give, each as often; the "
    "warnings say what was not looked at."
)
_DIFFERING = (
    "A table does not hold what its inputs give: somebody wrote beside the step, or a run went "
    "wrong. No table was changed."
)
_REBUILD = (
    "Find out who wrote the rows that are named. `sluice reset NAME --step STEP` and a run write "
    "what differs where the step has `groups`; with `--tables` they fill those of others anew."
)
_HELD_BACK = (
    "Another run is at work, so this one stood back: it read no row and changed nothing, and says "
    "nothing of the pipeline's state."
)
_HELD_BACK_LATER = (
    "Another run is at work, so this one stood back in the middle. What was committed before "
    "stays; nothing was written twice."
)
_WAIT = (
    "Wait for the run that the message names. What waits after it is read by the next one; Airflow "
    "tries this one again."
)
_NOT_JUDGED = (
    "No rule could be evaluated, so nobody knows yet whether these rows are good; downstream is "
    "held back."
)
_ACCOUNTS = {
    "done": "Every row is accounted for.",
    "undelivered": "Every row is accounted for and the target is complete; a further sink lacks "
    "some of its rows, and the next run tries it again.",
    "out of time": "The time budget ended the run: every row read is accounted for, the rest "
    "waits for the next run.",
    "nothing new": "Nothing new was waiting: no row was read and no table changed.",
}
_SHOWN_GAPS = 3

Tone = Literal["good", "warn", "bad", "idle"]
_TONES: dict[str, Tone] = {"nothing new": "idle", "out of time": "warn", "undelivered": "bad"}


@dataclass(frozen=True)
class Verdict:
    """How the run went: a tone for the colour, a sentence for people."""

    tone: Tone
    sentence: str


def judge(report: RunReport) -> Verdict:
    """The verdict over a run; an unbalanced report is bad whatever its status says."""
    if gaps := list(_find_gaps(report)):
        return Verdict("bad", _describe_imbalance(gaps))
    if report.status == "stopped by a rule":
        return Verdict("bad", _describe_stop(report))
    if report.status == "failed":
        return Verdict("bad", _DIFFERING if _differs(report) else _FAILED)
    if report.status == "held back":
        return Verdict("warn", _HELD_BACK_LATER if report.steps else _HELD_BACK)
    if report.kind == "verification" and report.status == "nothing new":
        return Verdict("idle", _NOTHING_YET)
    if report.kind == "verification":
        return (
            Verdict("warn", _EQUAL_IN_PART) if _needs_attention(report) else Verdict("good", _EQUAL)
        )
    rules = [rule for step in report.steps for rule in step.rules]
    if rules and all(rule.outcome is Outcome.ERROR for rule in rules):
        return Verdict("bad", _NOT_JUDGED)
    sentence = _ACCOUNTS[report.status]
    if report.status in ("done", "undelivered") or report.failed_rules:
        sentence += f" {_describe_rules(rules, report.blocks)}"
    quiet: Tone = "warn" if report.failed_rules or _needs_attention(report) else "good"
    return Verdict("bad" if report.blocks else _TONES.get(report.status, quiet), sentence)


def next_step(report: RunReport) -> str:
    """What to do after a run that did not end well; empty when there is nothing to do."""
    if report.status == "stopped by a rule" and not _refused_a_batch(report):
        return _JUDGED_TOO_LATE
    if report.status == "held back":
        return _WAIT
    if _differs(report):
        return _REBUILD
    if report.status == "undelivered":
        return _UNDELIVERED[report.exit_code]
    return _NEXT_STEPS.get(report.exit_code, "")


def _differs(report: RunReport) -> bool:
    """Whether a table was found that does not hold what it should."""
    return not all(one.equal for step in report.steps for one in step.verified)


def describe_gaps(counts: Counts) -> list[str]:
    """What does not add up, and which numbers cannot be; empty where all is well."""
    gaps, unread, unfated = [], counts.records.gap, counts.rows.gap
    if unread:
        rows = format_amount(abs(unread), "row")
        taken = "read, but neither malformed nor filtered nor entered"
        gaps.append(f"{rows} {taken if unread > 0 else 'entered or left out but never read'}")
    if unfated:
        rows = format_amount(abs(unfated), "row")
        gaps.append(f"{rows} {'without a fate' if unfated > 0 else 'with more than one fate'}")
    return gaps + [f"{name} is {rows:,}" for name, rows in counts.negative.items()]


def _find_gaps(report: RunReport) -> Iterator[str]:
    for step in report.steps:
        for gap in describe_gaps(step.counts):
            yield f"{gap} in {printable(step.name)}"
        for batch in step.batches:
            for gap in describe_gaps(batch.counts):
                yield f"{gap} in batch {batch.batch_id} of {printable(step.name)}"


def _describe_imbalance(gaps: list[str]) -> str:
    shown = "; ".join(gaps[:_SHOWN_GAPS])
    more = f", and {len(gaps) - _SHOWN_GAPS} more" if len(gaps) > _SHOWN_GAPS else ""
    return (
        f"The report DOES NOT BALANCE: {shown}{more}. Keep the landing files and the checkpoint, "
        "and report a defect."
    )


def _refused_a_batch(report: RunReport) -> bool:
    """True where the stop was an error of the run: a rule that is judged at the end, on rows that
    were written, is none."""
    return report.error is not None


def _describe_stop(report: RunReport) -> str:
    rows = report.counts.written
    if not _refused_a_batch(report):
        return (
            "A stop rule that is judged at the end, on all rows of the run, did not pass: "
            f"{_describe_kept(rows, '')}; downstream is held back."
        )
    refused = "A stop rule refused a batch: nothing of it was written, and the checkpoint"
    if not any(step.batches for step in report.steps):
        return f"{refused} stayed where it was; downstream is held back."
    kept = _describe_kept(rows, " of earlier batches")
    return f"{refused} is before it. {kept[0].upper()}{kept[1:]}; downstream is held back."


def _describe_kept(rows: int, whose: str) -> str:
    if not rows:
        return f"no row{whose} was written"
    verbs = "is written and stays" if rows == 1 else "are written and stay"
    return f"{format_amount(rows, 'row')}{whose} {verbs} in the table"


def _needs_attention(report: RunReport) -> bool:
    warned = (step.warnings or any(b.warnings for b in step.batches) for step in report.steps)
    return any(warned) or any(step.left_for_next_run for step in report.steps)


def _describe_rules(rules: list[RuleResult], blocks: bool) -> str:
    failed = sum(rule.outcome is Outcome.FAILED for rule in rules)
    unknown = sum(rule.outcome is Outcome.ERROR for rule in rules)
    if not rules:
        return "No rule was checked."
    if not failed and not unknown:
        return _describe_passed(rules)
    parts = [f"{failed} of {len(rules)} rules failed"] if failed else []
    if unknown:
        of_all = "" if failed else f" of {len(rules)} rules"
        parts.append(f"{unknown}{of_all} could not be evaluated")
    return f"{' and '.join(parts)}{'; downstream is held back' if blocks else ''}."


def _describe_passed(rules: list[RuleResult]) -> str:
    """Of rules none of which failed: one that no value reached says nothing of the rows."""
    idle, all_ = sum(rule.unmet for rule in rules), len(rules)
    if idle == all_:
        which = "the rule, so it was not" if all_ == 1 else f"the {all_} rules, so none was"
        return f"No value reached {which} evaluated."
    if idle:
        verb = "was" if idle == 1 else "were"
        return f"{all_ - idle} of {all_} rules passed; {idle} {verb} not evaluated: no value came."
    return "The one rule passed." if all_ == 1 else f"All {all_} rules passed."
