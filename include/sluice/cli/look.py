"""Verbs that show what runs have made: show, sql, open."""

import webbrowser
from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import Annotated

import typer

from ..backlog.undelivered import read_positions
from ..errors import SluiceError, SourceError, SpecError
from ..query import (
    StoredTable,
    count_rows,
    hide_values,
    name_tables,
    query_tables,
    tables_of,
    topics_of,
)
from ..report import latest_report, report_path
from ..spec import GROUP_PREFIX, SYSTEM_COLUMNS, Pipeline, Step, find_pipelines, load_pipeline
from ..storage import is_remote
from .app import Name, Root, Spec, app, err, find_reports, load, out, pipelines_folder
from .rows import Format, format_rows

_INTERNAL = {*SYSTEM_COLUMNS, "_event_time", "_row_hash"}

_Format = Annotated[
    Format,
    typer.Option(
        "--format",
        help="`csv` and `json` (an object a line) hold whole values, the table cuts wide ones.",
    ),
]


@app.command()
def show(
    name: Name = None,
    *,
    step: Annotated[
        str | None, typer.Option("--step", metavar="STEP", help="Default: the last step.")
    ] = None,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="The rows that were refused, and why.")
    ] = False,
    late: Annotated[bool, typer.Option("--late", help="The late table.")] = False,
    undelivered: Annotated[
        bool,
        typer.Option("--undelivered", help="The batches that further sinks lack, of every step."),
    ] = False,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="A condition on the rows.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many rows are shown.")] = 20,
    format_: _Format = Format.TABLE,
    all_columns: Annotated[
        bool, typer.Option("--all-columns", help="Those of the engine too, such as _batch_key.")
    ] = False,
    pii: Annotated[
        bool, typer.Option("--pii", help="Values of columns marked `pii` too, which are hidden.")
    ] = False,
    spec: Spec = None,
    root: Root = None,
) -> None:
    """Show rows of a table that a pipeline made, as a rule without Spark."""
    _, pipeline = load(name, spec)
    if quarantine + late + undelivered > 1:
        _refuse("only one of these can be shown", "--quarantine, --late, --undelivered")
    if undelivered and where:
        _refuse("a condition is on rows, and these are batches", "--where, --undelivered")
    if undelivered:
        lacking = _find_lacking(pipeline, root, step)
        _print(["sink", "key", "rows", "since", "why"], lacking[:limit], format_)
    else:
        kind = "__quarantine" if quarantine else "__late" if late else ""
        table = _find_table(pipeline, root, f"{_find_step(pipeline, step).name}{kind}")
        hidden = [] if pii else pipeline.pii
        _print(*_read(table, where, limit, hidden, all_columns), format_)


def _refuse(what: str, where: str) -> None:
    raise SpecError(what, where=where, do="Leave one out")


def _find_step(pipeline: Pipeline, name: str | None) -> Step:
    """The step of a name, else the last one. Raises SpecError."""
    if name is None:
        return pipeline.steps[-1]
    found = next((step for step in pipeline.steps if step.name == name), None)
    if found is None:
        names = ", ".join(step.name for step in pipeline.steps)
        raise SpecError("no such step", where="--step", value=name, do=f"There are: {names}")
    return found


def _find_table(pipeline: Pipeline, root: str | None, name: str) -> StoredTable:
    """A pipeline's table. Raises SpecError for a step without one, SourceError for one that is not
    there."""
    found = next((table for table in tables_of(pipeline, root) if table.name == name), None)
    if found is None:
        raise SpecError(
            "the step writes no table",
            where=f"{pipeline.name}.{name}",
            do="Its rows are in its sinks; `{kind: delta}` among them keeps a table",
        )
    if not found.exists:
        ran = latest_report(pipeline.paths(root).reports()) is not None
        raise SourceError(
            "no run wrote a row there yet" if ran else "the pipeline has not run yet",
            where=found.path,
            value=found.full_name,
            do=f"`sluice plan {pipeline.name}` says what waits, `sluice run {pipeline.name}` "
            "takes it in",
        )
    return found


def _read(
    table: StoredTable, where: str | None, limit: int, hidden: Sequence[str], all_columns: bool
) -> tuple[list[str], list[tuple]]:
    """Names of the columns that are shown, and the rows; says what they are of."""
    condition = f" WHERE ({where}\n)" if where else ""
    name = f"`{table.pipeline.name}`.`{table.name}`"
    query = f"SELECT * FROM {name}{condition} LIMIT {limit}"  # noqa: S608 (a person's own query)
    answer = query_tables(query, {table.full_name: table}, _say, limit)
    refused = table.step if table.name.endswith("__quarantine") else None
    shown = [n for n, name in enumerate(answer.names) if all_columns or not _is_internal(name)]
    hiding = (hide_values(answer.names, row, hidden, refused) for row in answer.rows())
    rows = [tuple(row[n] for n in shown) for row in hiding]
    count = count_rows(table)
    holds = "" if count is None else f" holds {count:,} row(s)"
    meeting = " that meet the condition" if where else ""
    _say(f"{table.full_name}{holds}; {len(rows):,} shown{meeting}\n  {table.path}")
    if hidden:
        _say(f"  hidden are {', '.join(hidden)}; `--pii` shows them")
    return [answer.names[n] for n in shown], rows


def _find_lacking(pipeline: Pipeline, root: str | None, step: str | None) -> list[tuple]:
    """What further sinks lack, a batch a row, the oldest first; says how much that is."""
    paths = pipeline.paths(root)
    steps = pipeline.steps if step is None else [_find_step(pipeline, step)]
    lacking = [
        (title, due.key, due.rows, due.since, due.said)
        for one in steps
        for title, position in read_positions(one, paths).items()
        for due in (position.due if position else [])
    ]
    rows = sum(row[2] for row in lacking)
    _say(f"{pipeline.name}: sinks lack {rows:,} row(s) of {len(lacking):,} batch(es)")
    return sorted(lacking, key=itemgetter(3))


def _print(names: Sequence[str], rows: list[tuple], format_: Format) -> None:
    if rows or format_ is not Format.TABLE:
        for line in format_rows(names, rows, format_):
            typer.echo(line)


def _say(sentence: str) -> None:
    err.print(sentence)


@app.command()
def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="SELECT ... in quotes.")],
    *,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Of the rows that are printed.")
    ] = None,
    format_: _Format = Format.TABLE,
    root: Root = None,
) -> None:
    """Ask the tables and topics of all pipelines, of tables as a rule without Spark.

    They are `<pipeline>.<step>`, or `<step>` where one pipeline has it, and the same with
    `__quarantine`, `__late`, and `__<input>` for a topic that it reads (`__source` of a single
    one). Data is shown as it is, columns marked `pii` too.
    """
    tables: list[StoredTable] = []
    for file in find_pipelines(pipelines_folder()):
        try:
            pipeline = load_pipeline(file)
            tables += [*topics_of(pipeline), *tables_of(pipeline, root)]
        except SluiceError as error:
            err.print(f"warning: {error}", style="yellow")
    answer = query_tables(query, name_tables(tables), _say, limit)
    for line in format_rows(answer.names, answer.rows(), format_):
        typer.echo(line)


@app.command("open")
def open_report(
    name: Name = None,
    run: Annotated[
        str | None, typer.Option("--run", metavar="ID", help="Run id; the newest run without it.")
    ] = None,
    spec: Spec = None,
    root: Root = None,
) -> None:
    """Open the report of a run in the browser, and print where it is."""
    _, pipeline = load(name, spec)
    folder = find_reports(pipeline.paths(root), run)
    if run is None:
        newest = latest_report(folder)
        run = newest.run_id if newest else None
    path = report_path(folder, run, "html") if run else None
    if path is None or not path.exists():
        raise SourceError(
            "no report of this run" if run else "no run has been reported yet",
            where=folder,
            value=run,
            do=f"`sluice run {pipeline.name}` makes one",
        )
    out.print(str(path))
    if not is_remote(path) and not webbrowser.open(Path(path).as_uri()):
        err.print("no browser could be opened here; open the file above", style="yellow")


def _is_internal(column: str) -> bool:
    return column in _INTERNAL or column.startswith(GROUP_PREFIX)
