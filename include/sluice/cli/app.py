"""The Typer app, the options most verbs share, and one way to show an error."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ExitCode, SluiceError, SpecError
from ..launch import divert_jvm_output
from ..report import report_path
from ..spec import Pipeline, find_pipelines, load_pipeline
from ..storage import PIPELINES, Paths


class Output:
    """Standard output, or standard error, of a verb: lines of plain text."""

    def __init__(self, to_err: bool = False) -> None:
        self._to_err = to_err

    def print(self, line: str = "", style: str | None = None) -> None:
        """Args: style: a colour or `dim`, which a terminal shows unless NO_COLOR is set."""
        look: dict[str, Any] = {"dim": True} if style == "dim" else {"fg": style}
        plain = False if os.environ.get("NO_COLOR") else None
        typer.secho(line, err=self._to_err, color=plain, **look)


out, err = Output(), Output(to_err=True)


INTERRUPTED = 130
"""What a shell takes for Ctrl-C."""
_FINE = (ExitCode.DONE, ExitCode.NOTHING_NEW, ExitCode.STOPPED_BY_RULE, INTERRUPTED)


class _Verbs(typer.core.TyperGroup):
    """Shows an error of ours as one sentence, and exits with its code.

    What a JVM prints stays out of sight, and is named when something went wrong.
    """

    def invoke(self, ctx: Any) -> Any:  # typer's own type for it has no public name
        with divert_jvm_output(_is_failure, err.print):
            try:
                return super().invoke(ctx)
            except SluiceError as error:
                err.print(str(error), style="red")
                raise typer.Exit(int(error.exit_code)) from None


def _is_failure(error: BaseException) -> bool:
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return False
    return not (isinstance(error, typer.Exit) and error.exit_code in _FINE)


app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Open the gate, drain the backlog, account for every row, shut the gate.",
    epilog="Exit codes: 0 done, 3 nothing new, 4 stopped by a rule, 5 failed and may pass later, "
    "6 failed for good.",
)

Name = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Pipeline, as `sluice list` shows it.")
]
Spec = Annotated[
    Path | None,
    typer.Option(
        "--spec", metavar="FILE", help="A pipeline file outside the project, instead of NAME."
    ),
]
Root = Annotated[
    str | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Where tables, checkpoints and reports live. Default: $SLUICE_ROOT, else .sluice",
    ),
]


def is_one_place() -> bool:
    """True where results and errors go to one terminal, file or pipe."""
    try:
        return os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno())
    except (OSError, ValueError):  # a stream without a file
        return False


def pipelines_folder() -> Path:
    """`$SLUICE_PIPELINES`, else the project's `include/pipelines`."""
    return Path(os.environ.get("SLUICE_PIPELINES") or PIPELINES)


def find_file(name: str | None, spec: Path | None) -> Path:
    """The YAML that NAME or --spec means. Raises SpecError listing the pipelines there are."""
    if spec is not None:
        return spec
    files = {path.stem: path for path in find_pipelines(pipelines_folder())}
    if name in files:
        return files[name]
    raise SpecError(
        f"no pipeline named {name!r}" if name else "say which pipeline",
        where=str(pipelines_folder()),
        do=f"There are: {', '.join(files) or 'none'}; `--spec FILE` names one that lies elsewhere",
    )


def load(name: str | None, spec: Path | None) -> tuple[Path, Pipeline]:
    """File and pipeline. Raises SpecError."""
    file = find_file(name, spec)
    return file, load_pipeline(file)


def find_reports(paths: Paths, run: str | None) -> str:
    """The folder of the report of a run: of one that verified it is another. Without a run that of
    the newest."""
    verified = paths.verdicts()
    return verified if run and report_path(verified, run).exists() else paths.reports()
