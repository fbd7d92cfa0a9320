"""What is known of a step before it runs."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Facts:
    """What the report of a step says from the start. `target`: empty for a step without a table.
    `shown`: where its rows go, for people. `within`: of `dedup`, as written."""

    name: str
    target: str
    shown: str
    quarantine: str
    late: str
    within: str | None
