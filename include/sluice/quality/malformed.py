"""The limit on malformed records, judged as a rule is."""

from ..report.model import Outcome, RuleResult
from ..spec import MalformedLimit

MAX_MALFORMED = "max_malformed"
"""What reports call it; no rule may have this name."""


def judge_malformed(
    limit: MalformedLimit, read: int, malformed: int, samples: list[str]
) -> RuleResult:
    """Whether at most the share that a source allows of its records was malformed.

    Args: read: records, the malformed ones among them. samples: what is wrong with two of them.
    """
    passed = read == 0 or malformed / read <= limit.share
    return RuleResult(
        name=MAX_MALFORMED,
        type=MAX_MALFORMED,
        level="row",
        on_fail=limit.on_fail,
        outcome=Outcome.PASSED if passed else Outcome.FAILED,
        evaluated=read,
        unexpected=malformed,
        samples=samples,
    )
