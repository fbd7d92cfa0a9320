"""What it means when a function fails that keeps a state of its own."""

import re

from ..errors import SluiceError, SpecError
from .fault import MAY_PASS, PYTHON, Fault

_ASKED = re.compile(r"\b(?:OSError|URLError|HTTPError|RequestException)\b")
"""What Python raises where a server or a disk did not answer, beside what `MAY_PASS` names."""


def explain_function(text: str, fault: Fault) -> SluiceError | None:
    """The error for what a function raised that keeps a state of its own; None for what may
    pass. Args: text: all that Spark said."""
    if not PYTHON.search(text):
        return None
    if MAY_PASS.search(fault.sentence) or _ASKED.search(fault.sentence):
        return None
    return SpecError(
        f"the step's own function failed: {fault.sentence}",
        where="transform",
        do="Mend it and run again: nothing of the batch was written, and its state is what it was "
        "before the batch",
    )
