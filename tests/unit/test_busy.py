"""A run that finds its checkpoint in use leaves nothing behind."""

import json

from sluice.checkpoint import hold_lease
from sluice.errors import ExitCode
from sluice.report import list_reports
from sluice.runner import run_pipeline
from sluice.spec import RunRequest
from sluice.storage import Paths


def test_a_busy_checkpoint_stores_no_report_however_often_it_is_tried(tmp_path):
    columns = {"id": "string"}
    source = {"path": str(tmp_path), "format": "json", "schema": columns}
    steps = [
        {"name": name, "source": source, "sink": {"mode": "append"}} for name in ("first", "second")
    ]
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps({"name": "shop", "steps": steps}))
    paths = Paths.under(tmp_path / "root", "shop")
    with hold_lease(paths.lease("second"), "the one at work"):
        for _ in range(3):
            report = run_pipeline(RunRequest(pipeline=str(file), root=str(tmp_path / "root")))
            assert report.exit_code == ExitCode.TRANSIENT
            assert "the one at work" in report.error
    assert list_reports(paths.reports()) == []
