"""`sluice jars fetch SET...`."""

from typing import Annotated

import typer

from ..setup.fetch import fetch_jars
from ..setup.jars import Jar, jar_sets
from .app import app, out

jars = typer.Typer(no_args_is_help=True, help="The locked JVM jars.")
app.add_typer(jars, name="jars")


@jars.callback()
def _jars() -> None:
    """The locked JVM jars, kept in the user's cache folder."""


@jars.command()
def fetch(
    sets: Annotated[
        list[str], typer.Argument(metavar="SET...", help=f"Any of: {', '.join(jar_sets())}")
    ],
) -> None:
    """Fetch sets of jars once and check every byte."""

    def show(jar: Jar, what: str) -> None:
        out.print(f"{what:<8}{jar.name} ({jar.size / 1e6:.1f} MB)")

    fetch_jars(*sets, on_jar=show)
