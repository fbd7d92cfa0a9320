"""`python -m sluice.cli` is `sluice`."""

from . import app

app()
