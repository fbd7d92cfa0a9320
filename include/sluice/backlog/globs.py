"""Hadoop's globs, as Spark's file source reads them: `*`, `?`, `[a-z]`, `[^a]`, `{a,b}` and `\\`
before a special character."""

import os
import re
from collections.abc import Iterator

from ..storage import is_remote

_MAGIC = re.compile(r"[{}\[\]*?\\]")
_SPECIAL = re.compile(r"([\\{}\[\]*?,^])")


def has_magic(path: str) -> bool:
    """True where Spark takes a path for a glob."""
    return _MAGIC.search(path) is not None


def literal_start(path: str) -> str:
    """The part of a path before its first special character."""
    match = _MAGIC.search(path)
    return path[: match.start()] if match else path


def expand_braces(pattern: str) -> list[str]:
    """`a{b,c}` -> `ab`, `ac`: a brace may hold slashes, so it is taken apart before the path is."""
    match = re.search(r"(?<!\\)\{((?:\\.|[^{}\\])*)\}", pattern)
    if match is None:
        return [pattern]
    parts = re.split(r"(?<!\\),", match[1])
    return [
        p
        for part in parts
        for p in expand_braces(pattern[: match.start()] + part + pattern[match.end() :])
    ]


def compile_glob(pattern: str) -> re.Pattern:
    """A glob for one name, without braces, as a regular expression."""
    regex, i = "", 0
    while i < len(pattern):
        char = pattern[i]
        closing = pattern.find("]", i + 2)
        if char == "\\" and i + 1 < len(pattern):
            i += 1
            regex += re.escape(pattern[i])
        elif char == "[" and closing > 0:
            inside = pattern[i + 1 : closing].replace("\\", "\\\\").replace("[", "\\[")
            regex += "[" + ("^" + inside[1:] if inside[0] in "!^" else inside) + "]"
            i = closing
        else:
            regex += {"*": ".*", "?": "."}.get(char, re.escape(char))
        i += 1
    return re.compile(regex, re.DOTALL)


def expand_path(path: str) -> list[str]:
    """The files and folders an absolute path names: itself where it has no glob, else every one
    that matches. Hidden names match like all others."""
    if not has_magic(path):
        return [path] if os.path.exists(path) else []
    return sorted(
        {
            found
            for one in expand_braces(path)
            for found in _descend("/", [part for part in one.split("/") if part])
        }
    )


def _descend(folder: str, parts: list[str]) -> Iterator[str]:
    if not parts:
        yield folder
        return
    if not has_magic(parts[0]):
        below = os.path.join(folder, parts[0])
        yield from _descend(below, parts[1:]) if os.path.exists(below) else ()
        return
    try:
        names = os.listdir(folder)
    except (NotADirectoryError, FileNotFoundError):
        return
    glob = compile_glob(parts[0])
    for name in names:
        if glob.fullmatch(name):
            yield from _descend(os.path.join(folder, name), parts[1:])


def _escape(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def any_name(names: list[str]) -> str:
    """A glob that matches these names and no other."""
    return _escape(names[0]) if len(names) == 1 else "{" + ",".join(map(_escape, names)) + "}"


def any_folder(folders: list[str]) -> str:
    """A glob for some folders of one store: its scheme and bucket, or the slash of a disk, come
    before the glob, because Hadoop reads them first: `{/a,/b}` is a path relative to where the
    process runs."""
    store = "/".join([*folders[0].split("/", 3)[:3], ""]) if is_remote(folders[0]) else "/"
    return store + any_name([f"{folder}/".removeprefix(store).rstrip("/") for folder in folders])
