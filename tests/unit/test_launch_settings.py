"""Settings of Spark that hang on what a pipeline is made of."""

import pytest
import yaml
from sluice.launch import settings as settings_module
from sluice.launch.settings import spark_settings
from sluice.spec import load_pipeline

DEBUGGING = "spark.python.sql.dataFrameDebugging.enabled"


@pytest.mark.parametrize(
    ("transform", "noted"), [(None, "false"), ("clean.sql", "false"), ("clean.py:clean", "true")]
)
def test_lines_of_code_are_noted_only_for_a_transform_in_python(
    tmp_path, monkeypatch, transform, noted
):
    monkeypatch.setattr(settings_module, "jar_paths", lambda *_: [])
    for name in ("clean.sql", "clean.py"):
        (tmp_path / name).touch()
    source = {"kind": "files", "path": "x", "format": "json", "schema": {"id": "string"}}
    step = {"name": "s", "source": source, "transform": transform, "sink": {"mode": "append"}}
    file = tmp_path / "p.yaml"
    file.write_text(yaml.safe_dump({"name": "p", "steps": [step]}))
    assert spark_settings(load_pipeline(file), 0, root=str(tmp_path))[DEBUGGING] == noted
