"""Write the golden files of the run report anew: `python tests/golden/regenerate.py`.

Read the diff before committing it. run_report.json is an example kept by hand; its text form and
the model's JSON schema follow from the code.
"""

import json
from pathlib import Path

from sluice.report import RunReport, render_text

GOLDEN = Path(__file__).parent


def schema_text() -> str:
    """The JSON schema of RunReport as the golden file holds it."""
    return (
        json.dumps(RunReport.model_json_schema(), indent=1, sort_keys=True, ensure_ascii=False)
        + "\n"
    )


if __name__ == "__main__":
    (GOLDEN / "run_report.schema.json").write_text(schema_text(), encoding="utf-8")
    example = RunReport.model_validate_json((GOLDEN / "run_report.json").read_bytes())
    (GOLDEN / "run_report.txt").write_text(render_text(example), encoding="utf-8")
