"""Dependencies point one way, and the heavy libraries stay where they belong."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from sluice.storage import PROJECT

ENGINE = PROJECT / "include" / "sluice"
_BASE = {"errors", "storage", "spec"}
_STATE = _BASE | {"backlog", "checkpoint", "report"}
ALLOWED = {
    "errors": set(),
    "storage": {"errors"},
    "spec": {"errors", "storage"},
    "setup": {"errors"},
    "propose": {"errors"},
    "report": _BASE,
    "launch": _BASE | {"setup"},
    "checkpoint": _BASE | {"report"},
    "backlog": _BASE | {"checkpoint"},
    "spark": _BASE | {"backlog", "checkpoint", "launch"},
    "quality": _BASE | {"report", "spark"},
    "sources": _STATE | {"spark"},
    "sinks": _BASE | {"spark"},
    "streaming": _STATE | {"launch", "quality", "sinks", "sources", "spark"},
    "runner": _STATE | {"launch", "quality", "sources", "spark", "streaming", "verify"},
    "warmup": _BASE | {"launch", "runner", "setup", "spark"},
    "verify": _STATE | {"launch", "spark", "streaming"},
    "query": _BASE | {"backlog", "launch", "sources", "spark"},
    "check": _BASE | {"backlog", "launch", "setup", "sinks"},
    "cli": _STATE
    | {"check", "launch", "propose", "query", "runner", "setup", "streaming", "verify"},
    "orchestration": _STATE | {"launch"},
    "ui": _BASE | {"orchestration", "query", "report"},
    "demo": _BASE | {"launch", "orchestration", "report", "runner", "setup"},
}
"""Package (or module of the top) -> those it may import, at any place in its files."""

_ON_SPARK = {"spark", "sources", "sinks", "quality", "streaming"}
HOMES = {
    "pyspark": _ON_SPARK,
    "delta": {"spark"},
    "deltalake": {"check", "query"},
    "great_expectations": {"quality"},
    "airflow": {"orchestration", "ui"},
}
"""Library -> layers whose files may import it."""

HEAVY = (
    "pyspark",
    "great_expectations",
    "airflow",
    "pandas",
    "pyarrow",
    "clevercsv",
    "deltalake",
    "psycopg",
)
UNLOADED = {
    "no_heavy_library": (
        HEAVY,
        (
            "errors",
            "spec",
            "report",
            "backlog",
            "setup.jars",
            "setup.class_archive",
            "launch",
            "checkpoint",
            "query",
            "check",
            "runner",
            "warmup.archive",
            "cli",
            "demo.drive",
        ),
    ),
    "no_airflow_in_the_stream": (
        ("great_expectations", "airflow"),
        ("quality.rules", "quality.expectations", "streaming.step", "streaming.drain"),
    ),
    "no_spark_in_the_scheduler": (
        ("pyspark", "great_expectations"),
        ("orchestration.dag", "orchestration.tasks", "orchestration.standalone", "ui.plugin"),
    ),
}
"""Libraries, and modules that must not load them: each group is imported in one fresh
interpreter."""


def find_modules() -> dict[str, Path]:
    """Every module of the engine by its name below `sluice`, and its file."""
    found = {
        ".".join(path.relative_to(ENGINE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(ENGINE.rglob("*.py"))
    }
    del found["__init__"]
    return found


MODULES = find_modules()


def layer_of(module: str) -> str:
    """`streaming.batch` -> `streaming`."""
    return module.partition(".")[0]


def find_imports(path: Path) -> set[str]:
    """Everything a file imports, lazily too.

    Our own modules without `sluice.`; of other libraries `library:` and the package's name.
    """
    package = ("sluice", *path.relative_to(ENGINE).parent.parts)
    found = set()
    for node in _walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        found.update(
            name.removeprefix("sluice.")
            if name.startswith("sluice.")
            else f"library:{name.partition('.')[0]}"
            for name in names
        )
    return found


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, but for what only a type checker reads."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _walk(child)


def imported_modules(path: Path) -> set[str]:
    """The modules of the engine that a file imports, lazily too."""
    ours = {name for name in find_imports(path) if not name.startswith("library:")}
    return {name if name in MODULES else name.rpartition(".")[0] for name in ours} & MODULES.keys()


@pytest.mark.parametrize(("module", "path"), MODULES.items(), ids=MODULES)
def test_a_module_imports_only_what_its_layer_may(module, path):
    layer = layer_of(module)
    assert layer in ALLOWED, f"a new package: say in ALLOWED what {layer} may import"
    found = find_imports(path)
    ours = {name for name in found if not name.startswith("library:") and name != "__version__"}
    assert {name for name in ours if layer_of(name) not in ALLOWED[layer] | {layer}} == set()
    libraries = {name.removeprefix("library:") for name in found if name.startswith("library:")}
    assert {library for library in libraries & set(HOMES) if layer not in HOMES[library]} == set()


def test_no_layer_imports_itself_in_a_circle():
    assert find_circle(ALLOWED) == []


def test_no_module_imports_itself_in_a_circle():
    assert find_circle({name: imported_modules(path) for name, path in MODULES.items()}) == []


def find_circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of a graph, by its nodes; empty when there is none."""
    try:
        TopologicalSorter({node: near - {node} for node, near in graph.items()}).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_a_circle_is_found():
    assert sorted(set(find_circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}))) == ["a", "b", "c"]


def test_an_import_inside_a_function_is_found():
    assert "library:great_expectations" in find_imports(ENGINE / "quality" / "expectations.py")
    assert "streaming.delivering.deliver_step" in find_imports(ENGINE / "runner.py")
    assert "setup.class_archive" in imported_modules(ENGINE / "launch" / "jvm_flags.py")


_IMPORT_FIRST = """
import importlib, os, sys
import airflow.models.dag, pydantic, pyspark.sql  # once, and not once for each
for name in sys.argv[1:]:
    if (child := os.fork()) == 0:
        importlib.import_module("sluice." + name)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(name + " cannot be imported alone")
"""


def test_every_package_can_be_imported_alone():
    packages = [name for name, path in MODULES.items() if path.name == "__init__.py"]
    done = run_python(_IMPORT_FIRST, *packages, "errors", "runner")
    assert done.returncode == 0, done.stderr


_IMPORT_ALL = """
import sys, importlib
for name in sys.argv[2].split():
    importlib.import_module("sluice." + name)
    loaded = [library for library in sys.argv[1].split() if library in sys.modules]
    assert not loaded, f"{name} loads {loaded}"
"""


@pytest.mark.parametrize(("libraries", "modules"), UNLOADED.values(), ids=UNLOADED)
def test_importing_a_module_loads(libraries, modules):
    done = run_python(_IMPORT_ALL, " ".join(libraries), " ".join(modules))
    assert done.returncode == 0, done.stderr


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess:
    """Run some lines in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300
    )
