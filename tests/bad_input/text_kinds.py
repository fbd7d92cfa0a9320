"""Text, whose lines fit anything: what is left is compression and names."""

import bz2
import gzip
import random

import zstandard

from tests.bad_input.kind import UNREADABLE, Kind, Landing

_NOISE = random.Random(1).randbytes(200_000).hex().encode()
_GZ, _BZ2, _ZST = gzip.compress(_NOISE), bz2.compress(_NOISE), zstandard.compress(_NOISE)


def _unreadable(*whys: str) -> tuple[tuple[None, str], ...]:
    return tuple((None, f"{UNREADABLE}: {why}") for why in whys)


def _value(*values: str) -> tuple[str, ...]:
    return tuple(f'{{"value":"{value}"}}' for value in values)


PACKED = (
    Kind(
        "packed",
        "gz, bz2 and zst files, also of several members",
        "read",
        files={
            "1.txt.gz": gzip.compress(b"1\n") + gzip.compress(b"2\n"),
            "2.txt.bz2": bz2.compress(b"3\n") + bz2.compress(b"4\n"),
            "3.txt.zst": zstandard.compress(b"5\n") + zstandard.compress(b"6\n"),
            "4.txt.GZ": gzip.compress(b"7\n"),
            "5.txt.bz2": bz2.compress(b""),
        },
        rows=_value("1", "2", "3", "4", "5", "6", "7"),
    ),
    Kind(
        "truncated_gzip",
        "a truncated gzip file",
        "the file is refused as a whole: one quarantine row `unreadable_file`; "
        "the other files are unaffected",
        files={"a.txt.gz": _GZ[:-1000]},
        refused=_unreadable("cannot be read: java.io.EOFException: Unexpected end of input stream"),
    ),
    Kind(
        "truncated_bzip2",
        "a truncated bzip2 file",
        "the same, also where only its first bytes are left",
        files={"a.txt.bz2": _BZ2[:-1000], "head.txt.bz2": b"BZh9"},
        refused=_unreadable(
            "cannot be read: java.io.IOException: unexpected end of stream",
            "cannot be read: not a bzip2 file",
        ),
    ),
    Kind(
        "truncated_zstandard",
        "a truncated zstandard file",
        "the same",
        files={"a.txt.zst": _ZST[:-1000]},
        refused=_unreadable(
            "cannot be read: com.github.luben.zstd.ZstdIOException: Truncated source"
        ),
    ),
    Kind(
        "corrupt_gzip",
        "a gzip file whose checksum is wrong",
        "the same",
        files={"a.txt.gz": (small := gzip.compress(b"1\n"))[:-8] + b"\0\0\0\0" + small[-4:]},
        refused=_unreadable("cannot be read: java.io.IOException: gzip stream CRC failure"),
    ),
    Kind(
        "misnamed_packed",
        "a plain file named `.gz` or `.bz2`",
        "the same",
        files={"a.txt.gz": "plain text, no gzip\n", "b.txt.bz2": "1\n"},
        refused=_unreadable(
            "cannot be read: java.io.IOException: not a gzip file",
            "cannot be read: not a bzip2 file",
        ),
    ),
    Kind(
        "unknown_packing",
        "a `.snappy` or `.lz4` file",
        "the same: their readers would find no rows in a broken one",
        files=dict.fromkeys(("a.txt.snappy", "b.txt.lz4", "c.txt.LZ4"), "garbage\n" * 99),
        refused=_unreadable(*["compressed in a way that is not read; gz, bz2 and zst are"] * 3),
    ),
    Kind(
        "bzip2_tail",
        "garbage after a bzip2 stream",
        "the stream is read, the rest left out, as bzip2 does",
        files={"a.txt.bz2": bz2.compress(b"1\n") + b"garbage"},
        rows=_value("1"),
    ),
)

_NAMES = {
    "blanks": ["a b.txt", " lead.txt", "trail.txt ", "a\tb.txt"],
    "percent": ["100%.txt", "%41.txt", "a%2Fb.txt"],
    "plus_hash_question": ["a+b.txt", "a#b.txt", "a?b.txt", "a&b;c.txt"],
    "brackets": ["[a].txt", "{a}.txt", "a*b.txt", "d[x]/in.txt"],
    "unicode": ["ü.txt", "u\u0308.txt", "😀.txt", "a\u202eb.txt", "ж" * 120 + ".txt"],
    "newline": ["a\nb.txt", "d\nx/in.txt"],
    "shell": ["-rf.txt", "~.txt", "$HOME.txt", "`id`.txt", "'q'.txt", '"q".txt'],
    "traversal": ["a..b.txt", "..%2f..%2fetc.txt", "..\\..\\etc.txt"],
    "long": ["x" * 246 + ".txt"],
}


def _names(key: str, comes: str, gets: str = "read") -> Kind:
    files = {name: f"{key} {number}\n" for number, name in enumerate(_NAMES[key])}
    visible = [text.strip() for name, text in files.items() if not name.startswith(".")]
    return Kind(f"name_{key}", comes, gets, files=files, rows=_value(*visible))


NAMES = (
    _names("blanks", "file names with spaces and tabs, also at either end"),
    _names("percent", "file names with `%`, also such as look encoded (`%41`, `a%2Fb`)"),
    _names("plus_hash_question", "file names with `+`, `#`, `?`, `&`, `;`"),
    _names("brackets", "file and folder names with brackets, braces, stars"),
    _names(
        "unicode",
        "file names with umlauts (composed and not), emoji, right-to-left marks, "
        "240 bytes of Cyrillic",
    ),
    _names("newline", "a line break in a file's or folder's name"),
    _names(
        "shell",
        "file names with quotes, `$`, backquotes, a leading `-` or `~`",
        "read; nothing is ever passed to a shell",
    ),
    _names(
        "traversal",
        "path traversal in file names (`..\\..\\etc`, `..%2f`)",
        "a name and no path: read where it lies, or hidden for its leading dot",
    ),
    _names("long", "a file name of 250 bytes"),
    Kind(
        "name_colon",
        "a colon in a file's name; in a folder's name",
        "`unreadable_file`, since Hadoop takes it for a URI; read",
        files={"a:b.txt": "1\n", "d:x/in.txt": "2\n"},
        rows=_value("2"),
        refused=_unreadable(
            "cannot be read: java.net.URISyntaxException: "
            "Relative path in absolute URI: .a:b.txt.crc"
        ),
    ),
    Kind(
        "hidden_names",
        "hidden names, `.tmp`, `._COPYING_`",
        "no rows",
        files={
            "writing.txt.tmp": "1\n",
            ".hidden.txt": "2\n",
            "_hidden.txt": "3\n",
            "c.txt._COPYING_": "4\n",
        },
    ),
    Kind(
        "folder_like_a_file",
        "a folder named like a file",
        "a folder",
        files={"folder.txt/inside.txt": "1\n"},
        rows=_value("1"),
    ),
)

TEXTS = Landing(
    "text",
    {"format": "text", "schema": {"value": "string"}},
    PACKED + NAMES,
    ("next.txt", "next\n"),
    ending="txt",
)
