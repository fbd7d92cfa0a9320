"""The command line: `sluice <verb>`.

Exit codes: 0 done, 3 nothing new, 4 stopped by a rule, 5 transient, 6 terminal.
"""

# ruff: noqa: I001  (`--help` lists the verbs in this order)
from .app import app
from .listing import list_pipelines
from .inspect import plan, report, validate
from .check import check
from .look import open_report, show, sql
from .run import backfill, run
from .deliver import deliver, give_up
from .rename import rename
from .reset import reset
from .torture import torture
from .verify import verify
from .author import infer, new, schema
from .jars import fetch

__all__ = [
    "app",
    "backfill",
    "check",
    "deliver",
    "fetch",
    "give_up",
    "infer",
    "list_pipelines",
    "new",
    "open_report",
    "plan",
    "rename",
    "report",
    "reset",
    "run",
    "schema",
    "show",
    "sql",
    "torture",
    "validate",
    "verify",
]
