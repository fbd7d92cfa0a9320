"""A Java regular expression of topic names, as far as Python means the same by it."""

import re

_SET = r"\[\^?(?:[\w.-]|\\[.dwDW-])+\]"
_COMMON = re.compile(
    rf"(?:\(\?i\))?(?:[\w.|^$)-]|\\[.dwDW-]|{_SET}|\((?:\?[:=!])?|[*+?]|\{{\d+(?:,\d*)?\}})*",
    re.ASCII,
)
"""What both read alike. Others they read differently without a word: `[a-z&&[^b]]` is an
intersection to Java, a set and more to Python."""


def compile_pattern(pattern: str) -> re.Pattern | None:
    """The same pattern for Python; None when only Java can say what it means.

    To be used with `search`: that is what Spark does with topic names.
    """
    if not _COMMON.fullmatch(pattern):
        return None
    try:
        return re.compile(pattern, re.ASCII)
    except re.error:
        return None
