"""What to try where refused records look like a known slip of the pipeline file."""

import re
from collections.abc import Iterable, Iterator

from .model import Refusal

_HINTS = (
    (
        r"a quoted value is not closed",
        "quoted values seem to hold line breaks: try `multi_line: true`",
    ),
    (
        r"not as many fields as the header",
        "records have another number of fields than the header: look at `options: {sep: …}` and "
        "`quote`",
    ),
    (
        r"first line names none of the schema's columns",
        "the first line names no column of `schema`: look at `options: {sep: …}`, or write "
        "`header: false`",
    ),
    (
        r"^not a JSON object: [\[{]\s*$",
        "a JSON document seems to spread over lines: try `multi_line: true`",
    ),
    (
        r"^not valid ",
        "bytes that are not of the declared encoding: name the right one with `encoding`",
    ),
)


def list_hints(refusals: Iterable[Refusal]) -> Iterator[str]:
    """A sentence for each known pattern in the samples of unreadable records."""
    samples = [s for refusal in refusals if refusal.reason == "malformed" for s in refusal.samples]
    for pattern, hint in _HINTS:
        if any(re.search(pattern, sample) for sample in samples):
            yield f"{hint}; `sluice infer` proposes it from the files"
