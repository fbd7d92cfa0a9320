"""What `make test` leaves to `make test LONG=1`: further cases of what it shows by others."""

import os
from collections.abc import Iterable
from typing import Any

import pytest

LONG = os.environ.get("SLUICE_LONG") == "1"
further = pytest.mark.skipif(not LONG, reason="a further case: `make test LONG=1` runs it")


def leave(cases: Iterable[Any], *left: Any) -> list[Any]:
    """Cases for `parametrize`, of which some are left to the long runs.

    Raises ValueError where one of these is no case.
    """
    known = list(cases)
    if unknown := [case for case in left if case not in known]:
        raise ValueError(f"no case {unknown}; there are {known}")
    return [pytest.param(case, marks=[further] * (case in left)) for case in known]
