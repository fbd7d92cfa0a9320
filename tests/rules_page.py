"""What include/docs/rules.md holds: its pipeline, and its two tables of types."""

import re

from sluice.storage import PROJECT

PAGE = (PROJECT / "include" / "docs" / "rules.md").read_text()
(PIPELINE,) = re.findall(r"```yaml\n(.+?)```", PAGE, re.S)


def read_types(heading: str) -> dict[str, list[list[str]]]:
    """The table of types below a heading: type -> the names in each of its other cells."""
    (section,) = re.findall(rf"^## {heading}\n(.+?)(?=^## )", PAGE, re.S | re.M)
    rows = re.findall(r"^\| `(expect_\w+)` \|(.+)\|$", section, re.M)
    return {name: [re.findall(r"`(\w+)`", cell) for cell in rest.split("|")] for name, rest in rows}
