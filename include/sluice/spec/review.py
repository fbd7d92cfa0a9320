"""What a pipeline file says that is right as YAML and cannot be meant; nothing is started for it.

Only `sluice validate` asks: a look for news, and a run, have no time for it.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import SpecError, suggest
from .columns import unknown_type
from .expectations import (
    EXPECTATIONS,
    NOT_ON_SPARK,
    cannot_quarantine,
    known_kwargs,
    needed_kwargs,
    suggest_type,
    unknown_kwargs,
)
from .file_source import FileSource
from .foreach_sink import ForeachBatchSink, ForeachSink
from .input import Input
from .lines import At, Lines
from .loader import find_pipelines, load_neighbours
from .pipeline import Pipeline
from .reader_options import describe_options
from .rules import RuleSpec
from .schedule import After
from .step import Step
from .types import find_wrong_type


@dataclass(frozen=True)
class Finding:
    """Something that cannot be meant. `at`: the fields that lead to it. `warns`: it may be meant
    all the same."""

    at: At
    what: str
    value: object = None
    do: str = ""
    warns: bool = False

    def to_error(self, file: Path, lines: Lines) -> SpecError:
        """The finding with file, field and line."""
        written, _ = lines.find(self.at)
        where = f"{file}: {'.'.join(map(str, written or self.at))}"
        place = lines.describe(self.at)
        value = None if lines.holds_variable(self.at) else self.value
        return SpecError(self.what, where=where, value=value, do=self.do.strip(), place=place)


def review_pipeline(pipeline: Pipeline, file: Path) -> list[Finding]:
    """Everything in a pipeline that cannot be meant: rules, options, types, code that is not there.

    In the order of the file's steps.
    """
    found = []
    if pipeline.name != file.stem:
        found.append(
            Finding(
                ("name",),
                f"the file is named {file.stem}, by which `sluice` knows the pipeline, and Airflow "
                "knows it by its name",
                pipeline.name,
                f"Write `name: {file.stem}`, or rename the file",
                warns=True,
            )
        )
    for number, step in enumerate(pipeline.steps):
        for finding in _review_step(step, pipeline.folder):
            found.append(_below(("steps", number), finding))
    return [*found, *_review_after(pipeline), *_review_cleaning(pipeline)]


def _review_after(pipeline: Pipeline) -> Iterator[Finding]:
    """Steps that the schedule waits for and the pipelines beside this one do not have."""
    awaited = pipeline.schedule.places if isinstance(pipeline.schedule, After) else {}
    names = {step: step.partition(".")[0] for step in awaited}
    others = {other.name: other for other in load_neighbours(pipeline, names.values())}
    for step, at in awaited.items():
        other = others.get(names[step])
        if other is None:
            beside = [file.stem for file in find_pipelines(pipeline.folder)]
            what = f"no other pipeline of this folder that can be read is named {names[step]}"
            do = suggest(names[step], [name for name in beside if name != pipeline.name])
            yield Finding(at, what, step, do or f"It wakes by the asset sluice.{step} only", True)
            continue
        steps = [f"{other.name}.{one.name}" for one in other.steps]
        if step not in steps:
            what = f"pipeline {other.name} has no such step, so the schedule would wait for ever"
            yield Finding(at, what, step, suggest(step, steps) or f"It has {', '.join(steps)}")
        elif way := _find_way(other, pipeline.name):
            by = f", by way of {', '.join(way[1:-1])}" if way[1:-1] else ""
            what = f"pipeline {other.name} waits for this one as well{by}: each would wake the next"
            yield Finding(at, what, step, "Leave it out in one of them", warns=True)


def _find_way(first: Pipeline, name: str) -> list[str]:
    """The pipelines by which one waits for another, from the first to the last; empty where it does
    not."""
    ways, seen = [(first, [first.name])], {first.name}
    while ways:
        pipeline, way = ways.pop(0)
        steps = pipeline.schedule.steps if isinstance(pipeline.schedule, After) else []
        awaited = dict.fromkeys(step.partition(".")[0] for step in steps)
        if name in awaited:
            return [*way, name]
        for other in load_neighbours(pipeline, awaited) if awaited else ():
            if other.name in awaited and other.name not in seen:
                seen.add(other.name)
                ways.append((other, [*way, other.name]))
    return []


def _review_cleaning(pipeline: Pipeline) -> Iterator[Finding]:
    """Files that another pipeline reads as well are not cleaned."""
    cleans = any(step.cleaned for step in pipeline.steps)
    others = list(load_neighbours(pipeline)) if cleans else []
    for number, step in enumerate(pipeline.steps):
        for name, source in step.cleaned.items():
            at: At = ("inputs", name) if step.inputs else ()
            for other in (other for other in others if other.reads_files_of(source)):
                yield Finding(
                    ("steps", number, *at, "source", "clean_source"),
                    f"pipeline {other.name} may read the same files, so none is taken away",
                    source.clean_source,
                    "Clean in neither, or give each its own `pattern`",
                    warns=True,
                )


def _below(parents: At, finding: Finding) -> Finding:
    at = (*parents, *finding.at)
    return Finding(at, finding.what, finding.value, finding.do, finding.warns)


def _review_step(step: Step, folder: Path) -> Iterator[Finding]:
    for name, type_ in step.columns.items():
        if "<" in type_ and (wrong := find_wrong_type(type_)):
            error = unknown_type(name, wrong, "source", "schema")
            yield Finding(error.at, str(error), do=error.do)
    for one in (*step.streams.values(), *step.statics.values()):
        at: At = ("inputs", one.name) if step.inputs else ()
        for finding in _review_input(one, folder):
            yield _below(at, finding)
    for number, rule in enumerate(step.rules):
        for finding in _review_rule(rule):
            yield _below(("rules", number), finding)
    if step.transform and not step.transform.endswith(".sql"):
        yield from _review_code(folder, step.transform, ("transform",), "function")
    for number, sink in enumerate(step.sinks):
        if isinstance(sink, ForeachSink):
            yield from _review_code(folder, sink.writer, ("sink", number, "writer"), "class")
        if isinstance(sink, ForeachBatchSink):
            at = ("sink", number, "function")
            yield from _review_code(folder, sink.function, at, "function")


def _review_input(one: Input, folder: Path) -> Iterator[Finding]:
    """Of a step with one source its options alone: its rules and its code are the step's."""
    if isinstance(one.source, FileSource):
        yield from _review_options(one.source)
    for number, rule in enumerate(one.rules):
        for finding in _review_rule(rule):
            yield _below(("rules", number), finding)
    if one.transform and not one.transform.endswith(".sql"):
        yield from _review_code(folder, one.transform, ("transform",), "function")


def _review_options(source: FileSource) -> Iterator[Finding]:
    for name, advice in describe_options(source).items():
        yield Finding(
            ("source", "options", name),
            f"{source.format} has no such option{'' if advice else ' that we know'}, and Spark "
            "ignores it without a word",
            source.options[name],
            advice or "Leave it out unless your Spark has it",
            warns=not advice,
        )


def _review_rule(rule: RuleSpec) -> Iterator[Finding]:
    """A rule's type, then its kwargs, then what its failure does."""
    type_ = rule.type
    if type_ not in EXPECTATIONS:
        advice = suggest_type(type_) or "Its gallery lists what there is"
        yield Finding(("type",), "Great Expectations has no such expectation", type_, advice)
        return
    if type_ in NOT_ON_SPARK:
        what = "Great Expectations cannot evaluate this on Spark"
        yield Finding(("type",), what, type_, f"Instead, {NOT_ON_SPARK[type_]}")
        return
    known = known_kwargs(type_)
    for name in unknown_kwargs(rule):
        advice = f"{suggest(name, known)}It takes {', '.join(sorted(known))}"
        what = f"{type_} has no kwarg {name!r}"
        yield Finding(("kwargs", name), what, rule.kwargs[name], advice)
    missing = [name for name in needed_kwargs(type_) if name not in rule.kwargs]
    if missing:
        what = f"{type_} needs {', '.join(map(repr, missing))}"
        yield Finding(("kwargs",), what, do="Write it under `kwargs`")
    if cannot_quarantine(rule):
        yield Finding(
            ("on_fail",),
            f"{type_} looks at the whole table, and only rules on single rows can quarantine",
            rule.on_fail,
            "Instead, write `on_fail: warn` or `stop`, or a rule on single rows",
        )


def _review_code(folder: Path, reference: str, at: At, noun: str) -> Iterator[Finding]:
    """A reference to Python beside the file, by the file's text: no code is run."""
    name, _, wanted = reference.partition(":")
    file, what = folder / name, f"{at[0]} {reference}: "
    if not file.is_file():
        beside = [path.name for path in folder.glob("*.py")]
        do = f"{suggest(name, beside)}The path is relative to the pipeline's YAML"
        yield Finding(at, f"{what}no such file", str(file), do)
        return
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) else ""
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        yield Finding(at, f"{what}the file is not Python: {said}", f"{name}{line}", "Mend it there")
        return
    defined = _defined_names(tree)
    if defined is None or wanted in defined:
        return
    near = suggest(wanted, defined) if wanted else ""
    do = near or f"{name} has {', '.join(defined) or 'none'}"
    yield Finding(at, f"{what}no such {noun} in the file", wanted, do)


def _defined_names(tree: ast.Module) -> list[str] | None:
    """The names that a module defines at its top; None where only running it would tell."""
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            found += [(alias.asname or alias.name) for alias in node.names]
        elif isinstance(node, ast.Assign):
            found += [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        elif not isinstance(node, ast.Expr):
            return None
    return None if "*" in found else found
