"""Alerts: where a person would be called, a file for each batch that has some."""

import os
import re
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def write_alerts(visits: DataFrame, token: str) -> None:
    """The visits with an alert as lines of JSON; a batch that comes again writes the same file."""
    alerts = visits.where("alert").drop("alert").orderBy("began", "visitor")
    lines = [f"{line}\n" for (line,) in alerts.select(F.to_json(F.struct("*"))).collect()]
    if lines:
        file = Path(os.environ.get("ALERTS", "alerts"), re.sub(r"[^\w.-]", "-", token) + ".jsonl")
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(".tmp")
        unfinished.write_text("".join(lines), encoding="utf-8")
        unfinished.replace(file)  # nobody reads half of it
