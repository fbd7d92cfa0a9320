"""The names that a transform may give: none of the engine's, and none twice."""

from collections.abc import Sequence

from ...errors import SpecError
from ...spark.columns import DEFECT, RAW, RESCUED, SOURCE

CARRIED = (RAW, DEFECT, RESCUED, SOURCE)
"""What the engine knows of a row beside the user's columns."""


def check_names(names: Sequence[str], where: str) -> None:
    """Raise SpecError for a column that starts with `_`, and for two of one name."""
    for name in names:
        if name.startswith("_"):
            raise SpecError(
                f"column {name!r}: names that start with `_` are kept for system columns",
                where=where,
                do=f"Rename it in a transform: `SELECT {name} AS {name.lstrip('_') or 'other'}`",
            )
    lowered = [name.lower() for name in names]
    twice = [name for name in names if lowered.count(name.lower()) > 1]
    if twice:
        raise SpecError(
            "two columns have one name; Spark does not tell upper and lower case apart",
            where=where,
            value=", ".join(dict.fromkeys(twice)),
            do="Rename one, or leave it out of the star: `SELECT * EXCEPT (name), ...`",
        )
