"""Every block of commands in README and docs works as printed, in order, in a clone."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from sluice.storage import PROJECT

from tests.documentation import DOCS, find_blocks, name_document
from tests.long_runs import leave

KINDS = {"sh", "text", "yaml", "sql", "json", "python", "py"}
"""`python` is a program as a whole, `py` a part of one."""
DEVICES = PROJECT / "include" / "docs" / "examples" / "devices.md"
"""Three minutes, most of them Kafka's; `tests/spark/test_worked_devices.py` runs its pipeline."""


def list_commands(document: Path) -> list[str]:
    """The commands that are printed there, but those that another test runs."""
    blocks = [b["text"] for b in find_blocks(document) if b["kind"] == "sh" and not b["by"]]
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("source ")]


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """The project's tracked files in a folder of their own, with its virtual environment."""
    folder = tmp_path_factory.mktemp("clone")
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    for name in filter(None, tracked.stdout.split("\0")):
        if (PROJECT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, folder / name)
    (folder / ".venv").symlink_to(PROJECT / ".venv")
    for name in ("requirements.lock", "pyproject.toml"):
        # Else `make` may install the clone's own package into the environment that both share.
        os.utime(folder / name, (0, 0))
    return folder


@pytest.mark.parametrize("document", DOCS, ids=name_document)
def test_every_block_says_what_it_is_and_who_runs_it(document):
    blocks = find_blocks(document)
    assert len(blocks) * 2 == len(re.findall("^ *```", document.read_text(), re.M))
    for block in blocks:
        assert block["kind"] in KINDS, f"{document.name}: a block begins {block['text'][:60]!r}"
        for name in re.findall(r"tests/[\w/.]+", block["by"] or ""):
            assert (PROJECT / name).is_file(), f"{document.name}: {name} is not there"


@pytest.mark.timeout(1200)  # six starts of Spark
@pytest.mark.parametrize("document", leave(DOCS, DEVICES), ids=map(name_document, DOCS))
def test_commands_work_as_printed(document, clone):
    env = {name: value for name, value in os.environ.items() if not name.startswith("SLUICE_")}
    env |= {"SLUICE_PROJECT": str(clone), "BROWSER": "true"}
    if "SLUICE_CACHE" in os.environ:
        env["SLUICE_CACHE"] = os.environ["SLUICE_CACHE"]
    commands = list_commands(document)
    assert commands or document != DOCS[0]
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", f"source .venv/bin/activate && {command}"],
            cwd=clone,
            env=env,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        said = f"{command}\n{done.stdout}\n{done.stderr}"
        fine = (0, 3) if command.startswith("sluice plan") else (0,)
        assert done.returncode in fine, said
        assert "Traceback" not in said
        if re.match("sluice (run|backfill|deliver)", command):
            assert ": DONE" in done.stdout, said
            assert "Every row is accounted for" in done.stdout, said
