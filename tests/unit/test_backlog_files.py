"""The probe's listing: Hadoop's globs, Spark's hidden names, dates in paths, closed folders."""

import os
from datetime import UTC, datetime

import pytest
from sluice.backlog import files_in_window, list_files
from sluice.backlog.files import file_date, is_hidden, is_hidden_folder
from sluice.backlog.globs import compile_glob, expand_braces, expand_path
from sluice.errors import SourceError
from sluice.spec import FileSource, Window


def source(path, **entries) -> FileSource:
    return FileSource(path=str(path), format="json", schema={"a": "int"}, **entries)


def names(path, **entries) -> list[str]:
    return [f.path.removeprefix(f"{path}/") for f in list_files(source(path, **entries))]


def land(folder, *paths) -> None:
    for number, path in enumerate(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")
        os.utime(folder / path, (1000 + number, 1000 + number))


@pytest.mark.parametrize(
    ("pattern", "expanded"),
    [
        ("a", ["a"]),
        ("{a,b}c", ["ac", "bc"]),
        ("{a,{b,c}}d", ["ad", "bd", "cd"]),
        ("x{a/b,c}/{1,2}", ["xa/b/1", "xa/b/2", "xc/1", "xc/2"]),
        (r"\{a,b\}", [r"\{a,b\}"]),
        ("{a,}", ["a", ""]),
    ],
)
def test_braces_expand_as_hadoop_expands_them(pattern, expanded):
    assert set(expand_braces(pattern)) == set(expanded)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.json", "a b.json", "a.jsonl"),
        ("?.json", "a.json", "ab.json"),
        ("[a-c].json", "b.json", "d.json"),
        ("[^a].json", "b.json", "a.json"),
        ("[!a].json", "b.json", "a.json"),
        (r"a\*.json", "a*.json", "ab.json"),
        ("a.json", "a.json", "aXjson"),
        ("100%.json", "100%.json", "100.json"),
        ("[a.json", "[a.json", "a.json"),
    ],
)
def test_a_glob_matches_as_hadoop_matches_it(pattern, matching, other):
    assert compile_glob(pattern).fullmatch(matching)
    assert not compile_glob(pattern).fullmatch(other)


def test_files_come_oldest_first_and_those_of_one_moment_by_path(tmp_path):
    land(tmp_path, "b.json", "deep/er/a.json", "c.json")
    os.utime(tmp_path / "c.json", (1000, 1000))
    assert names(tmp_path) == ["b.json", "c.json", "deep/er/a.json"]


def test_hidden_and_unfinished_names_are_not_waiting(tmp_path):
    land(
        tmp_path,
        "a.json",
        ".h.json",
        "_h.json",
        "x.json.tmp",
        "y.json._COPYING_",
        ".d/a.json",
        "_d/a.json",
        "z._COPYING_/a.json",
        "_k=1/a.json",
    )
    assert names(tmp_path) == ["a.json", "_k=1/a.json"]


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        (".a", True),
        ("_a", True),
        ("a.tmp", True),
        ("a._COPYING_", True),
        ("a", False),
        ("a.tmp.json", False),
    ],
)
def test_file_names_that_no_run_reads(name, hidden):
    assert is_hidden(name) is hidden


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        (".a", True),
        ("_a", True),
        ("_a=1", False),
        ("a._COPYING_", True),
        ("_metadata_1", False),
        ("a.tmp", False),
    ],
)
def test_folders_that_spark_does_not_enter(name, hidden):
    assert is_hidden_folder(name) is hidden


def test_the_pattern_and_the_path_may_be_globs(tmp_path):
    land(
        tmp_path,
        "2026/01/a.json",
        "2026/02/a.json",
        "2025/01/a.json",
        "2026/01/b.csv",
        ".x/01/a.json",
    )
    assert names(tmp_path / "2026", pattern="*.{json,txt}") == ["01/a.json", "02/a.json"]
    assert [
        f.path for f in list_files(source(tmp_path / "{2025,2026}/0[1]", pattern="*.json"))
    ] == [f"{tmp_path}/2026/01/a.json", f"{tmp_path}/2025/01/a.json"]
    assert (
        len(list_files(source(f"{tmp_path}/*/01"))) == 4
    )  # Hadoop's star matches hidden names: what is named is entered


def test_a_path_may_name_one_file(tmp_path):
    land(tmp_path, "a.json", "b.json")
    assert [f.name for f in list_files(source(tmp_path / "a.json"))] == ["a.json"]


def test_a_folder_with_an_unreadable_folder_inside_is_an_error_and_not_nothing_new(
    tmp_path, monkeypatch
):
    """Root reads every folder, so the refusal comes from a scandir of the test's own.

    It says what the kernel would say to another user.
    """
    land(tmp_path, "open/a.json", "shut/b.json")
    real = os.scandir

    def refuse(path):
        if str(path).endswith("/shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SourceError, match="shut: the landing folder cannot be read"):
        list_files(source(tmp_path))


def test_an_absent_folder_is_an_error_that_names_it(tmp_path):
    with pytest.raises(SourceError, match="nowhere: the landing folder does not exist.*Create it"):
        list_files(source(tmp_path / "nowhere"))


def test_a_glob_that_matches_nothing_yet_is_no_error(tmp_path):
    assert list_files(source(tmp_path / "*/orders")) == []


def test_a_folder_whose_name_reads_as_a_glob_is_an_error_and_not_nothing_new(tmp_path):
    land(tmp_path, "a[1]/x.json")
    with pytest.raises(SourceError, match="reads as a glob"):
        list_files(source(tmp_path / "a[1]"))
    assert len(list_files(source(str(tmp_path / r"a\[1\]")))) == 1


def test_a_file_that_goes_away_during_the_listing_is_left_out(tmp_path, monkeypatch):
    land(tmp_path, "a.json", "b.json")
    real = os.stat

    def vanish(path, *args, **kwargs):
        if str(path).endswith("a.json"):
            raise FileNotFoundError(path)
        return real(path, *args, **kwargs)

    monkeypatch.setattr("sluice.backlog.files.os.stat", vanish)
    assert names(tmp_path) == ["b.json"]


def test_links_to_folders_are_followed(tmp_path):
    land(tmp_path, "in/a.json", "elsewhere/b.json")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "again").symlink_to(tmp_path / "elsewhere")
    assert sorted(names(tmp_path / "in")) == ["a.json", "again/b.json", "link/b.json"]


@pytest.mark.parametrize("target", ["in", ".", "elsewhere"])
def test_a_link_that_leads_back_to_a_folder_above_it_is_an_error_that_names_it(tmp_path, target):
    """Spark follows such a link forty times over; it is no different by way of another folder."""
    land(tmp_path, "in/a.json", "elsewhere/b.json")
    (tmp_path / "in" / "out").symlink_to(tmp_path / target)
    if target == "elsewhere":
        (tmp_path / "elsewhere" / "back").symlink_to(tmp_path / "in")
    with pytest.raises(
        SourceError, match=r"(out|back): a link leads back to a folder above it.* Remove the link"
    ):
        names(tmp_path / "in")


def test_a_link_that_ends_nowhere_is_no_file(tmp_path):
    land(tmp_path, "a.json")
    (tmp_path / "dangling.json").symlink_to(tmp_path / "absent")
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize("spelling", ["file://{}", "file:{}", "{}/", "{}/./"])
def test_a_folder_may_be_spelled_in_several_ways(tmp_path, spelling):
    land(tmp_path, "a.json")
    assert [f.path for f in list_files(source(spelling.format(tmp_path)))] == [f"{tmp_path}/a.json"]


@pytest.mark.parametrize(
    ("path", "pattern", "date"),
    [
        ("/in/2026-01-31.json", "%Y-%m-%d", datetime(2026, 1, 31)),
        ("/in/2026/01/31/a.json", "%Y/%m/%d", datetime(2026, 1, 31)),
        ("/in/20260131T05.json", "%Y%m%dT%H", datetime(2026, 1, 31, 5)),
        ("/in/2026-13-45.json", "%Y-%m-%d", None),
        ("/in/orders.json", "%Y-%m-%d", None),
        ("/in/120260131.json", "%Y%m%d", None),
    ],
)
def test_a_date_is_read_out_of_a_path(path, pattern, date):
    assert file_date(path, "/in", pattern) == date


def test_a_window_takes_the_files_dated_in_it_and_leaves_out_undated_ones(tmp_path):
    land(tmp_path, "2026-01-01.json", "2026-01-02.json", "2026-01-03.json", "notes.json")
    window = Window(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 3, tzinfo=UTC))
    assert [f.name for f in files_in_window(source(tmp_path, file_date="%Y-%m-%d"), window)] == [
        "2026-01-01.json",
        "2026-01-02.json",
    ]
    assert len(files_in_window(source(tmp_path), window)) == 4


def test_expand_path_names_only_what_exists(tmp_path):
    land(tmp_path, "a/x/1", "b/x/1", "c/1")
    assert expand_path(str(tmp_path / "{a,b,c}/x")) == [
        str(tmp_path / "a/x"),
        str(tmp_path / "b/x"),
    ]
    assert expand_path(str(tmp_path / "?/x/[0-9]")) == [
        str(tmp_path / "a/x/1"),
        str(tmp_path / "b/x/1"),
    ]
