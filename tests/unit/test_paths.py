"""Every path lies below the root."""

from pathlib import Path

import pytest
from sluice.storage import Paths, depth_below, is_remote, open_path


def test_everything_of_a_pipeline_lies_below_its_root():
    paths = Paths.under("/data/sluice/", "orders")
    assert paths.table("lines") == "/data/sluice/tables/orders/lines"
    assert paths.quarantine("lines") == "/data/sluice/tables/orders/lines__quarantine"
    assert paths.late("lines") == "/data/sluice/tables/orders/lines__late"
    assert paths.checkpoint("lines") == "/data/sluice/checkpoints/orders/lines"
    assert paths.reports() == "/data/sluice/reports/orders"


def test_a_backfill_never_shares_the_scheduled_checkpoint():
    paths = Paths.under("/data", "orders")
    assert paths.checkpoint("lines", "b1") == "/data/backfills/orders/b1/lines"
    assert not paths.checkpoint("lines", "b1").startswith(paths.checkpoint("lines"))


def test_a_table_may_lie_where_its_name_says():
    paths = Paths.under("/data", "orders")
    assert paths.table("lines", "shop/lines") == "/data/tables/shop/lines"
    assert paths.table("lines", "/other/lines") == "/other/lines"
    assert paths.table("lines", "s3a://lake/lines") == "s3a://lake/lines"


@pytest.mark.parametrize("name", ["../secrets", "a/../../b"])
def test_a_table_name_cannot_leave_the_root(name):
    with pytest.raises(ValueError, match="would leave the root"):
        Paths.under("/data", "orders").table("lines", name)


def test_the_root_comes_from_the_environment_unless_it_is_given(monkeypatch, tmp_path):
    monkeypatch.setenv("SLUICE_ROOT", str(tmp_path))
    assert Paths.under(None, "orders").root == str(tmp_path)
    assert Paths.under("/data", "orders").root == "/data"


def test_a_relative_root_is_made_absolute_and_a_uri_is_kept(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert Paths.under("here", "orders").root == str(tmp_path / "here")
    assert Paths.under("s3a://lake/sluice/", "orders").root == "s3a://lake/sluice"


@pytest.mark.parametrize(
    ("path", "remote"),
    [
        ("s3a://lake/x", True),
        ("/data", False),
        ("file:///data", False),
        ("data", False),
        ("hdfs://nn/x", True),
    ],
)
def test_a_path_of_this_machine_is_told_from_a_remote_one(path, remote):
    assert is_remote(path) is remote


@pytest.mark.parametrize("text", ["/data/x", "file:/data/x", "file:///data/x"])
def test_a_local_uri_opens_as_a_plain_path(text):
    assert open_path(text) == Path("/data/x")


@pytest.mark.parametrize(
    ("path", "folder", "depth"),
    [
        ("/a/b/c.json", "/a/b", 5),
        ("/a/b/c.json", "/a/b/", 5),
        ("/a/b/c.json", "/a", 3),
        ("/a/b/c.json", "/", 1),
        ("/a/b", "/a/b", 5),
        ("/a/bc/d.json", "/a/b", 0),
        ("s3a://bucket/a/b.json", "s3://bucket/a", 9),
        ("s3a://bucket/a/b.json", "s3a://buck", 0),
        ("s3a://bucket/a/b.json", "/bucket/a", 0),
        ("/bucket/a/b.json", "s3a://bucket/a", 0),
    ],
)
def test_how_far_down_a_file_lies_is_told_by_what_it_lies_below(path, folder, depth):
    assert depth_below(path, folder) == depth
