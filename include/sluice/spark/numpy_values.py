"""Values of numpy on their way into Spark, at no cost to those who have none."""

import importlib
import sys
from types import ModuleType
from typing import Any

_ASKED = "pyspark.testing.utils"


class _Unloaded(ModuleType):
    """What PySpark asks, until somebody wants more of it than whether there is numpy."""

    def __getattr__(self, name: str) -> Any:
        if name == "have_numpy":
            return "numpy" in sys.modules
        if name.startswith("__"):  # the import system asks for some that a module need not have
            raise AttributeError(name)
        if sys.modules.get(_ASKED) is self:
            del sys.modules[_ASKED]
        return getattr(importlib.import_module(_ASKED), name)


def spare_numpy() -> None:
    """Let PySpark take numpy for there only where it is loaded: elsewhere no value is of it.

    PySpark 4.2 asks of each literal and each argument of a call whether it is numpy's, and imports
    its own test utilities to learn whether there is numpy, which import pandas and pyarrow: half a
    CPU-second by the first literal, a twentieth of a small run.
    """
    if _ASKED not in sys.modules:
        sys.modules[_ASKED] = _Unloaded(_ASKED)
