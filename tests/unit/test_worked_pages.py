"""The worked pipelines: each is there, seeded, and quoted on its page as it is."""

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from sluice.demo import worked
from sluice.demo.worked import WORKED, find_file, run_worked
from sluice.errors import SpecError
from sluice.report import Counts, RunReport, StepReport
from sluice.spec import find_pipelines, load_pipeline
from sluice.storage import PIPELINES, PROJECT

from tests.documentation import FOLDER, find_blocks, read_prose

NAMES = sorted(WORKED)


def find_quoted(name: str) -> dict[str, str]:
    """The files of a worked pipeline by name."""
    files = sorted((PIPELINES / name).glob("*.*"))
    return {file.name: file.read_text(encoding="utf-8") for file in files}


def test_every_folder_of_a_worked_pipeline_can_be_demonstrated():
    assert {file.parent.name for file in PIPELINES.glob("*/*.yaml")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_worked_pipeline_can_be_loaded_and_makes_no_dag_until_it_is_copied(name):
    file = find_file(name)
    assert load_pipeline(file).name == file.stem
    assert file.stem not in [path.stem for path in find_pipelines(PIPELINES)]


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_lands_the_same_bytes(name):
    first, second = (list(WORKED[name].generate()) for _ in range(2))
    assert first == second
    assert len(first) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_a_page_quotes_every_file_of_its_pipeline_and_shows_its_report(name):
    page = FOLDER / "examples" / f"{name}.md"
    blocks = [block["text"] for block in find_blocks(page)]
    for file, text in find_quoted(name).items():
        assert text in blocks, f"{page.name} does not quote {file} as it is"
    assert f"({name}.png)" in read_prose(page)
    assert f"make demo NAME={name}\n" in blocks


def test_an_unknown_name_lists_those_there_are(tmp_path):
    with pytest.raises(SpecError) as caught:
        run_worked("cloudtrial", tmp_path / "root", lambda text: None)
    assert "Did you mean 'cloudtrail'? There are: activity, ads, cloudtrail" in str(caught.value)
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("read", [0, 42])
def test_a_trial_that_ended_before_all_was_read_is_tried_again_for_longer(
    tmp_path, monkeypatch, read
):
    asked, said = [], []

    def run_pipeline(request):
        asked.append((request.run_id, request.dev_seconds))
        counts = Counts(read=read if request.dev_seconds == 20 else 42)
        step = StepReport(name="counts", target="", quarantine="", counts=counts)
        now = datetime(2026, 1, 1, tzinfo=UTC)
        return RunReport(
            pipeline="wordcount",
            run_id=request.run_id,
            started=now,
            ended=now,
            status="done",
            steps=[step],
        )

    monkeypatch.setattr(worked, "run_pipeline", run_pipeline)
    reports = run_worked("wordcount", tmp_path / "root", said.append)
    assert [report.counts.read for report in reports] == [42, 42, 42]
    first = [("wordcount_1", 20.0)] + ([] if read else [("wordcount_1_longer", 60.0)])
    assert asked[: len(first)] == first and len(asked) == 3 * len(first)
    told = "Its 20 seconds were over when it had read 0 of 42 records; once more, for 60 seconds"
    assert said.count(told) == (0 if read else 3)


def test_make_demo_says_so_and_starts_nothing():
    done = subprocess.run(
        [sys.executable, "-m", "sluice.demo", "nothing"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (6, "")
    assert "no such worked pipeline" in done.stderr and ", ".join(NAMES) in done.stderr
