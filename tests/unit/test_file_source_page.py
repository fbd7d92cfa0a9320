"""The page about files says what the models and `sluice infer` say."""

from sluice.cli import app
from sluice.storage import PROJECT
from typer.testing import CliRunner

from tests.documentation import find_blocks
from tests.model_table import PAGE, fill_tables


def test_its_tables_are_those_of_the_models():
    text = PAGE.read_text(encoding="utf-8")
    assert "| `file_date` |" in text and "`timestampFormat`" in text
    assert fill_tables(text) == text, "run `python -m tests.model_table`"


def test_its_german_csv_is_what_infer_says_of_the_sample():
    said = CliRunner().invoke(app, ["infer", str(PROJECT / "include/samples/rechnungen")])
    assert said.exit_code == 0
    assert find_blocks(PAGE)[0]["text"] == said.stdout
