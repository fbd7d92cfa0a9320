"""The project can be read and run anywhere.

No path of one machine is in it, and no host that only some can reach.
"""

import re
import subprocess

import pytest
from sluice.storage import PROJECT

MACHINE_PATHS = re.compile(r"(?<![\w.~}])/(?:work|root|home|Users|mnt)/\w+")
HOSTS = re.compile(r"https?://(?!127\.0\.0\.1)[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
HOSTS_FINE = re.compile(
    r"https?://(json-schema\.org|www\.w3\.org|([\w-]+\.)*apache\.org|github\.com|docs\.\w+|([\w-]+\.)?example\.(com|org|invalid))",
    re.IGNORECASE,
)
REGISTRIES = re.compile(
    "|".join(
        [
            "py" + "pi.org",
            "pythonhosted" + ".org",
            "repo1" + ".maven",
            "maven" + ".org",
            "sona" + "type",
            "registry" + ".npmjs",
        ]
    )
)


def tracked_texts() -> list[str]:
    """Every tracked text file; all of them when the project is not a git checkout."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "-z"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    names = done.stdout.split("\0") if done.returncode == 0 else []
    return [
        name
        for name in names
        if name
        and (PROJECT / name).is_file()
        and (PROJECT / name).suffix not in (".png", ".jpg", ".gz", ".ico")
    ]


FILES = tracked_texts()
if not FILES:
    pytest.skip(
        "not a git checkout: nothing says which files belong to the project",
        allow_module_level=True,
    )


@pytest.mark.parametrize("name", FILES)
def test_a_file_names_no_machine_and_no_registry(name):
    text = (PROJECT / name).read_text(encoding="utf-8", errors="replace")
    found = (
        MACHINE_PATHS.findall(text)
        + REGISTRIES.findall(text)
        + [host for host in HOSTS.findall(text) if not HOSTS_FINE.match(host)]
    )
    assert found == []


def test_no_file_is_a_leftover():
    assert [
        name for name in FILES if re.search(r"(\.orig|\.rej|\.bak|\.swp|~|\.pyc|\.log)$", name)
    ] == []


@pytest.mark.parametrize(
    "picture", sorted((PROJECT / "include" / "docs").rglob("*.png")), ids=lambda path: path.name
)
def test_no_picture_makes_every_clone_much_bigger(picture):
    assert 10_000 < picture.stat().st_size < 150_000
