"""Writes what `sluice validate` says of typical mistakes into mistakes.md.

`python -m tests.unit.mistake_table`
"""

import tempfile
from pathlib import Path

from tests.unit.typical_mistakes import MISTAKES, RIGHT, Mistake, lay_out, validate

PAGE = Path(__file__).parents[2] / "include" / "docs" / "mistakes.md"
INTRODUCTION = f"""# What `sluice validate` says of typical mistakes

Each line is one edit of the pipeline below, and what is said of it before Spark is started: the \
field as the file has it, the value, the line, the step, and what to write instead.
`sluice validate --spark` also builds every step without data, and then shows the line of the SQL \
with a caret below the mistake.
`python -m tests.unit.mistake_table` writes this page from the cases of `tests/unit/\
typical_mistakes.py`.

```yaml
{RIGHT}```

| mistake | message |
|---|---|
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", "<br>")


def _render_line(mistake: Mistake, folder: Path) -> str:
    _, said = validate(lay_out(folder, mistake.text))
    return f"| {_cell(mistake.what)} | {_cell(said)} |\n"


def render_page() -> str:
    """The whole page, one line a mistake."""
    with tempfile.TemporaryDirectory() as folder:
        return INTRODUCTION + "".join(_render_line(m, Path(folder)) for m in MISTAKES)


if __name__ == "__main__":
    PAGE.write_text(render_page(), encoding="utf-8")
