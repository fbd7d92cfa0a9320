"""The table of a step with `groups`, from its log alone: by which commit the step made it last what
its query says, and what others did to it since."""

from .delta import find_commit_info, is_of_run, read_commit, table_version


def find_refresh(
    path: str, step: str, before: int | None = None
) -> tuple[int, dict, dict[str, str]] | None:
    """The newest commit by which a step replaced groups of its table. Args: step: its home,
    `pipeline/step`. Out and before: as of `find_commit_info`."""
    home = f"sluice/{step}/"
    return find_commit_info(
        path,
        lambda told: str(told.get("sluice", "")).startswith(home) and "versions" in told,
        before,
    )


def find_foreign(path: str, step: str, newest: int | None = None) -> dict[int, str]:
    """What somebody else did to the rows of a table since a step last looked before it refreshed
    it: the version of each commit, and its operation. Args: step: its home, `pipeline/step`.
    newest: the version up to which is looked; that of the table by default."""
    found, last = find_refresh(path, step), table_version(path) if newest is None else newest
    if found is None or last is None:
        return {}
    foreign = {}
    for version in range(found[1].get("seen", found[0]) + 1, last + 1):
        actions = read_commit(path, version) or []
        info: dict = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
        files = (action.get(kind, {}) for action in actions for kind in ("add", "remove"))
        if not is_of_run(info) and any(file.get("dataChange") for file in files):
            foreign[version] = info.get("operation", "a commit")
    return foreign


def describe_foreign(foreign: dict[int, str]) -> str:
    """What `find_foreign` found, in a few words."""
    shown = [f"{operation}, version {version} of it" for version, operation in foreign.items()]
    return "; ".join([*shown[:3], *(["…"] if len(shown) > 3 else [])])
