"""What is installed is what is pinned, and the pins fit each other."""

import re
from importlib.metadata import version

import pytest
from packaging.requirements import Requirement
from sluice.storage import PROJECT


def read_pins() -> dict[str, str]:
    """Package -> version of requirements.txt."""
    lines = [
        line.partition("#")[0].strip()
        for line in (PROJECT / "requirements.txt").read_text().splitlines()
    ]
    return {
        requirement.name: str(requirement.specifier).removeprefix("==")
        for requirement in map(Requirement, filter(None, lines))
    }


PINS = read_pins()


def test_every_direct_package_is_pinned_to_one_version():
    assert all(re.fullmatch(r"[\w.]+", pin) for pin in PINS.values()), PINS


@pytest.mark.parametrize("package", sorted(PINS))
def test_a_pin_is_in_the_lock_and_installed(package):
    lock = (PROJECT / "requirements.lock").read_text()
    assert re.search(
        rf"^{re.escape(package)}(\[.*\])?=={re.escape(PINS[package])} \\$", lock, re.MULTILINE
    )
    assert version(package) == PINS[package]


def test_every_locked_package_has_a_hash():
    blocks = re.split(
        r"\n(?=[a-z0-9])", (PROJECT / "requirements.lock").read_text().partition("\n\n")[0]
    )
    locked = [
        block for block in blocks if "==" in block.splitlines()[0] and not block.startswith("#")
    ]
    assert len(locked) > 100
    assert [block.splitlines()[0] for block in locked if "--hash=sha256:" not in block] == []


def test_pyspark_and_its_client_are_equal_for_they_overwrite_each_other():
    assert version("pyspark") == version("pyspark-client") == "4.2.0"


def test_the_lock_says_how_it_was_made():
    assert (
        "make lock, which resolves requirements.txt"
        in (PROJECT / "requirements.lock").read_text()[:300]
    )
