"""What is noted of a batch before its first write, so that a half-done one can be taken back.

A batch that was begun and whose target commit is not there is judged anew: under the rules, the
transform and the input of the retry. What the earlier try left in the quarantine and late tables
goes first. Each try has a number, which is part of the key of those writes.
"""

import time
from typing import Literal

from pydantic import BaseModel, ConfigDict

from ..storage import open_path, replace_file

_TRIES = 1 << 16
"""Tries of a batch that keys can tell apart: the key of a write is `batch * tries + try`."""


class Attempt(BaseModel):
    """A batch that is about to write. `definition`, `input`: digests of what decides fates."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    batch: int
    number: int
    definition: str
    input: str

    @property
    def version(self) -> int:
        """The number under which this try writes refused and late rows; it only ever grows."""
        return self.batch * _TRIES + self.number

    @staticmethod
    def batch_of(version: int) -> int:
        """The batch of which a write of refused or late rows was."""
        return version // _TRIES

    def differs_from(self, earlier: "Attempt") -> Literal["definition", "input"] | None:
        """What has changed since an earlier try; None where both are the same."""
        if self.definition != earlier.definition:
            return "definition"
        return "input" if self.input != earlier.input else None


def read_attempt(checkpoint: str, batch: int) -> Attempt | None:
    """The note of a batch's newest try; None where none began to write.

    A note that the power cut in two stands for a try whose number is not known: one from the
    upper half of the numbers, so that the next try's is another than any before.
    """
    path = open_path(checkpoint) / "attempt.json"
    if not path.exists():
        return None
    try:
        found = Attempt.model_validate_json(path.read_text(encoding="utf-8"))
    except ValueError:
        number = _TRIES // 2 + int(time.time()) % (_TRIES // 2 - 1)
        return Attempt(batch=batch, number=number, definition="", input="")
    return found if found.batch == batch else None


def note_attempt(checkpoint: str, attempt: Attempt) -> None:
    """Note a try before its first write, over the note of the batch before."""
    folder = open_path(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / "attempt.json", attempt.model_dump_json())
