"""Offsets and commits that were read, from and until, by place."""

COMMITS = "commits of "
"""How the place of a table begins in `ranges`."""


def merge_ranges(
    first: dict[str, tuple[int, int]], second: dict[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Ranges from the first to the last of both, by place."""
    both = {
        place: (min(first[place][0], second[place][0]), max(first[place][1], second[place][1]))
        for place in first.keys() & second.keys()
    }
    return {**first, **second, **both}
