"""Dependencies point one way, and the heavy libraries stay where they belong."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from sluice.storage import PROJECT

ENGINE = PROJECT / "include" / "sluice"
_BASE = {"errors", "storage", "spec"}
ALLOWED = {
    "errors": set(),
    "storage": {"errors"},
    "spec": {"errors", "storage"},
    "report": _BASE,
    "checkpoint": _BASE | {"report"},
    "backlog": _BASE | {"checkpoint"},
    "setup": {"errors"},
    "setup.warm": _BASE | {"setup", "spark", "spark.settings", "runner"},
    "spark.settings": _BASE | {"setup"},
    "spark": _BASE | {"backlog", "checkpoint", "spark.settings"},
    "quality": _BASE | {"report"},
    "sources": _BASE | {"backlog", "checkpoint", "report", "spark"},
    "sinks": _BASE | {"spark"},
    "streaming": _BASE
    | {"backlog", "checkpoint", "quality", "report", "sinks", "sources", "spark", "spark.settings"},
    "runner": _BASE
    | {"backlog", "checkpoint", "quality", "report", "spark", "spark.settings", "streaming"},
    "verify": _BASE | {"backlog", "report", "spark", "spark.settings"},
    "cli": _BASE | {"backlog", "checkpoint", "report", "setup", "runner", "streaming", "verify"},
    "orchestration": _BASE | {"backlog", "checkpoint", "report", "spark.settings"},
    "ui": _BASE | {"orchestration", "report"},
    "demo": _BASE | {"orchestration", "report"},
}
"""Layer -> layers it may import, at any place in its files.

A module that is a layer of its own is named with its package.
"""

_ON_SPARK = {"spark", "sources", "sinks", "quality", "streaming"}
HOMES = {
    "pyspark": _ON_SPARK,
    "delta": {"spark"},
    "great_expectations": {"quality"},
    "airflow": {"orchestration", "ui"},
}
"""Library -> layers whose files may import it."""

HEAVY = ("pyspark", "great_expectations", "airflow", "pandas", "pyarrow")
UNLOADED = [
    (
        HEAVY,
        (
            "errors",
            "spec",
            "report",
            "backlog",
            "setup.jars",
            "setup.cache",
            "spark.settings",
            "checkpoint",
            "runner",
            "cli",
            "demo.drive",
        ),
    ),
    (
        ("great_expectations", "airflow"),
        ("quality.rules", "quality.expectations", "streaming.step", "streaming.drain"),
    ),
    (
        ("pyspark", "great_expectations"),
        ("orchestration.dag", "orchestration.tasks", "orchestration.standalone", "ui.plugin"),
    ),
]
"""Libraries, and modules that must not load them; a group is imported in one new interpreter."""


def layer_of(module: str) -> str:
    """`spark.settings` -> itself, `streaming.batch` -> `streaming`."""
    return module if module in ALLOWED else module.partition(".")[0]


def find_imports(path: Path) -> set[str]:
    """Everything a file imports, lazily too.

    `sluice.` is left out for our own modules; others are known by their package's name.
    """
    package = ("sluice", *path.relative_to(ENGINE).parent.parts)
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join(
                    (
                        *package[: len(package) - node.level + 1],
                        *([node.module] if node.module else []),
                    )
                )
                if node.level
                else node.module
            )
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


def modules() -> list[tuple[str, Path]]:
    """Every module of the engine below its packages, and its file."""
    found = [
        (".".join(path.relative_to(ENGINE).with_suffix("").parts).removesuffix(".__init__"), path)
        for path in sorted(ENGINE.rglob("*.py"))
    ]
    return [(name, path) for name, path in found if name != "__init__"]


@pytest.mark.parametrize(("module", "path"), modules(), ids=[name for name, _ in modules()])
def test_a_module_imports_only_what_its_layer_may(module, path):
    layer = layer_of(module)
    assert layer in ALLOWED, f"a new package: say in ALLOWED what {layer} may import"
    ours = {
        name
        for name in find_imports(path)
        if not name.startswith("library:") and name != "__version__"
    }
    wrong = {
        name
        for name in ours
        if not any(
            layer_of(part) in ALLOWED[layer] | {layer} for part in (name, name.rpartition(".")[0])
        )
    }
    assert wrong == set()
    libraries = {
        name.removeprefix("library:") for name in find_imports(path) if name.startswith("library:")
    }
    assert {library for library in libraries & set(HOMES) if layer not in HOMES[library]} == set()


def test_no_layer_imports_itself_in_a_circle():
    def reachable(layer: str, seen: frozenset) -> set[str]:
        return {layer} | {
            far for near in ALLOWED[layer] - seen for far in reachable(near, seen | {near})
        }

    assert [
        layer
        for layer in ALLOWED
        if any(layer in reachable(near, frozenset()) for near in ALLOWED[layer])
    ] == []


def test_an_import_inside_a_function_is_found():
    assert "library:great_expectations" in find_imports(ENGINE / "quality" / "expectations.py")
    assert "storage.Paths" in find_imports(ENGINE / "runner.py")


@pytest.mark.parametrize(
    ("libraries", "modules"),
    UNLOADED,
    ids=["no_heavy_library", "no_airflow_in_the_stream", "no_spark_in_the_scheduler"],
)
def test_importing_a_module_loads(libraries, modules):
    code = (
        "import sys, importlib\n"
        "for name in sys.argv[2].split():\n"
        "    importlib.import_module('sluice.' + name)\n"
        "    loaded = [library for library in sys.argv[1].split() if library in sys.modules]\n"
        "    assert not loaded, f'{name} loads {loaded}'"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, " ".join(libraries), " ".join(modules)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
