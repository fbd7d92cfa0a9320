"""Everything a pipeline is connected to, tried one after the other."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from ..errors import ExitCode, SluiceError
from ..launch.settings import find_jar_sets
from ..setup.jars import jar_paths
from ..setup.java import find_java, java_version
from ..spec import (
    FileSource,
    FilesSink,
    JdbcSink,
    KafkaSink,
    KafkaSource,
    Pipeline,
    SinkKind,
    SourceKind,
    Step,
    TableSource,
    connection_variable,
    read_connection,
)
from ..storage import Paths, resolve_path
from .files import look_at_files, look_at_queue, try_writing
from .kafka import look_at_sink, look_at_topics
from .tables import known_columns, look_at_table

Attempt = tuple[str, Callable[[], str]]
"""What is tried, and what tries it: it returns what it saw, or raises SluiceError."""


@dataclass(frozen=True)
class Finding:
    """One thing that was tried. `says`: what was seen, or what failed and what to do next."""

    part: str
    says: str
    seconds: float
    exit_code: ExitCode = ExitCode.DONE

    @property
    def ok(self) -> bool:
        """Whether it answered as a run needs it."""
        return self.exit_code == ExitCode.DONE


def check_pipeline(pipeline: Pipeline, root: str | None) -> Iterator[Finding]:
    """Try each connection of a pipeline; nothing is left behind, and nothing is read but a byte.

    Args: root: where tables and checkpoints lie, by default where `Paths.under` says.
    """
    paths = pipeline.paths(root)
    for group in _list_attempts(pipeline, paths):
        for part, ask in group:
            found = _try(part, ask)
            yield found
            if not found.ok:
                break  # what comes behind it would fail by the same


def _try(part: str, ask: Callable[[], str]) -> Finding:
    began = time.monotonic()
    try:
        says, code = ask(), ExitCode.DONE
    except SluiceError as error:
        says, code = str(error), error.exit_code
    return Finding(part, " ".join(says.split()), time.monotonic() - began, code)


def _list_attempts(pipeline: Pipeline, paths: Paths) -> Iterator[list[Attempt]]:
    """Groups of attempts; those of a group rest upon each other."""
    yield [("java and jars", partial(_look_at_jars, pipeline, paths.root))]
    yield [(f"root {paths.root}", partial(try_writing, paths.root))]
    for step in pipeline.steps:
        for source in step.sources:
            yield [*_find_connections(step, source), *_attempts_of_source(step, source, paths)]
        for sink in step.sinks:
            yield [*_find_connections(step, sink), *_attempts_of_sink(step, sink, paths)]


def _look_at_jars(pipeline: Pipeline, root: str) -> str:
    sets = ("core", *find_jar_sets(pipeline, root))
    find_java()
    return f"Java {java_version()}; jars {', '.join(sets)} ({len(jar_paths(*sets))} files)"


def _find_connections(step: Step, part: SourceKind | SinkKind) -> list[Attempt]:
    def find(name: str) -> str:
        read_connection(name)
        return f"{connection_variable(name)} is set"

    return [(f"{step.name}: connection {name}", partial(find, name)) for name in part.connections]


def _attempts_of_source(step: Step, source: SourceKind, paths: Paths) -> list[Attempt]:
    title = f"{step.name}: source"
    if isinstance(source, FileSource):
        found: list[Attempt] = [(f"{title} {source.path}", partial(look_at_files, source))]
        queue = source.queue
        return found + ([(f"{title} queue", partial(look_at_queue, queue))] if queue else [])
    if isinstance(source, KafkaSource):
        return [(f"{title} kafka", partial(look_at_topics, source))]
    if isinstance(source, TableSource) and source.path is not None:
        place = source.place(paths)
        return [(f"{title} table {source.path}", partial(look_at_table, source, place))]
    return []


def _attempts_of_sink(step: Step, sink: SinkKind, paths: Paths) -> list[Attempt]:
    title = f"{step.name}: sink {sink.title}"
    if isinstance(sink, KafkaSink):
        return [(title, partial(look_at_sink, sink))]
    if isinstance(sink, JdbcSink):
        return [(title, partial(_look_at_database, step, sink, paths))]
    if sink.stays_below_root:
        return []  # the root was tried
    if sink is step.target:
        return [(title, partial(try_writing, step.target_path(paths)))] if step.target.table else []
    if isinstance(sink, FilesSink):
        return [(title, partial(try_writing, resolve_path(sink.path, paths.root)))]
    return []


def _look_at_database(step: Step, sink: JdbcSink, paths: Paths) -> str:
    from ..sinks.jdbc.look import look_at_database  # it loads PySpark's types

    return look_at_database(sink, known_columns(step, paths), mirror=bool(step.groups))
