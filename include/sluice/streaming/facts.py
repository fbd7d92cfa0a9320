"""What is known of a step before it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Facts:
    """What the report of a step says from the start. `target`: empty for a step without a table.
    `shown`: where its rows go, for people. `within`: of `dedup`, as written. `inputs`: each of
    several by name, with the version of a table that is read as a whole. `waited_for`:
    those that must have passed what is to be closed."""

    name: str
    target: str
    shown: str
    quarantine: str
    late: str
    within: str | None
    inputs: Mapping[str, int | None] = field(default_factory=dict)
    waited_for: frozenset[str] = frozenset()
