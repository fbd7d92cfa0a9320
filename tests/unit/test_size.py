"""Nothing in the engine is longer than a person reads at once."""

import ast
from pathlib import Path
from statistics import median

import pytest
from sluice.storage import PROJECT

MODULES = sorted((PROJECT / "include" / "sluice").rglob("*.py"))
DAGS = sorted((PROJECT / "dags").rglob("*.py"))


def count_lines(path: Path) -> int:
    """Lines of a file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def long_functions(path: Path, limit: int) -> list[str]:
    """Functions whose body, docstring left out, has more lines than `limit`."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            lines = body[-1].end_lineno - body[0].lineno + 1
            if lines > limit:
                found.append(f"{path.name}:{node.lineno} {node.name} has {lines} lines")
    return found


def test_there_is_something_to_measure():
    assert len(MODULES) > 20
    assert DAGS


@pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: str(path.relative_to(PROJECT / "include"))
)
def test_a_module_has_at_most_250_lines_and_its_functions_at_most_40(path):
    assert count_lines(path) <= 250
    assert long_functions(path, 40) == []


def test_half_of_the_modules_have_at_most_100_lines():
    assert median(count_lines(path) for path in MODULES) <= 100


@pytest.mark.parametrize("path", DAGS, ids=lambda path: path.name)
def test_a_dag_file_has_at_most_40_lines(path):
    assert count_lines(path) <= 40


def test_a_function_that_is_too_long_is_found(tmp_path):
    path = tmp_path / "long.py"
    path.write_text("def f():\n" + "    x = 1\n" * 41)
    assert long_functions(path, 40) == ["long.py:1 f has 41 lines"]
