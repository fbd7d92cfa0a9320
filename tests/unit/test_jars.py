"""Jars are exactly the locked ones, or none."""

import hashlib
import json
import os
import re
import subprocess
import sys

import pytest
from sluice.errors import PreflightError
from sluice.setup import fetch, ivy, jars
from sluice.setup.cache import cache_folder, spark_jars_folder
from sluice.setup.class_archive import class_archive_path
from sluice.setup.fetch import fetch_jars
from sluice.setup.jars import LOCK, Jar, jar_paths, jar_sets, locked_jars
from sluice.storage import PROJECT

CONTENT = b"a jar, as far as anyone can tell"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder and a lock of one small jar, whose download writes CONTENT and is
    counted."""
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    jar = Jar("core", "com.example:thing:1.0", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(jars, "_read_lock", lambda: {"core": (jar,)})
    downloads = []

    def download(coordinates, folder):
        downloads.append(coordinates)
        (folder / "thing-1.0.jar").write_bytes(CONTENT)

    monkeypatch.setattr(fetch, "download", download)
    return tmp_path / "jars", downloads


def test_the_lock_names_every_jar_with_size_and_hash():
    assert set(jar_sets()) == {"core", "avro", "kafka", "s3", "jdbc", "broker"}
    for jar in locked_jars(*jar_sets()):
        assert re.fullmatch(r"[\w.-]+:[\w.-]+:[\w.-]+", jar.coordinates)
        assert re.fullmatch(r"[0-9a-f]{64}", jar.sha256)
        assert jar.size > 1000


def test_the_lock_has_the_delta_that_was_seen_to_work():
    assert [jar.name for jar in locked_jars("core")] == [
        "delta-spark_4.2_2.13-4.4.0.jar",
        "delta-storage-4.4.0.jar",
    ]


def test_the_lock_names_no_host():
    assert "://" not in LOCK.read_text()


def test_a_jar_that_is_missing_names_the_command_that_fetches_its_set(cache):
    with pytest.raises(
        PreflightError, match=r"thing-1\.0\.jar was not fetched yet.*`sluice jars fetch core`"
    ):
        jar_paths("core")


def test_a_set_that_does_not_exist_lists_those_that_do(cache):
    with pytest.raises(
        PreflightError, match=r"no such set of jars \(got 'hive'\).*There are: core"
    ):
        jar_paths("hive")


def test_a_second_fetch_touches_no_network(cache):
    folder, downloads = cache
    assert (
        fetch_jars("core") == fetch_jars("core") == jar_paths("core") == [folder / "thing-1.0.jar"]
    )
    assert downloads == [["com.example:thing:1.0"]]


def test_a_fetch_leaves_nothing_but_the_jars(cache):
    folder, _ = cache
    fetch_jars("core")
    assert [path.name for path in folder.iterdir()] == ["thing-1.0.jar"]


def test_a_changed_byte_in_a_download_is_refused_and_not_kept(cache, monkeypatch):
    folder, _ = cache
    monkeypatch.setattr(
        fetch,
        "download",
        lambda _, target: (target / "thing-1.0.jar").write_bytes(b"A" + CONTENT[1:]),
    )
    with pytest.raises(
        PreflightError,
        match=r"thing-1\.0\.jar is not the file that jars\.lock\.json names: expected SHA-256",
    ):
        fetch_jars("core")
    assert list(folder.iterdir()) == []


def test_a_changed_byte_in_the_cache_is_refused_by_the_next_fetch(cache):
    folder, _ = cache
    fetch_jars("core")
    (folder / "thing-1.0.jar").write_bytes(CONTENT[:-1] + b"!")
    with pytest.raises(PreflightError, match="Delete it and run `sluice jars fetch core`"):
        fetch_jars("core")


def test_a_jar_cut_short_is_refused_at_use(cache):
    folder, _ = cache
    fetch_jars("core")
    (folder / "thing-1.0.jar").write_bytes(CONTENT[:-1])
    with pytest.raises(PreflightError, match=f"expected {len(CONTENT)} bytes"):
        jar_paths("core")


@pytest.fixture
def five_jars(tmp_path, monkeypatch):
    """An empty cache folder and a lock of five jars; the pauses taken before further tries."""
    digest = hashlib.sha256(CONTENT).hexdigest()
    five = tuple(Jar("kafka", f"com.example:jar{n}:1.0", len(CONTENT), digest) for n in range(5))
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    monkeypatch.setattr(jars, "_read_lock", lambda: {"kafka": five})
    pauses = []
    monkeypatch.setattr(fetch.time, "sleep", pauses.append)
    return pauses


def serve(folder, coordinates):
    """Put jars where a download puts them."""
    for each in coordinates:
        _, name, version = each.split(":")
        (folder / f"{name}-{version}.jar").write_bytes(CONTENT)


def test_a_jar_that_a_download_left_out_is_asked_for_again_after_a_pause(five_jars, monkeypatch):
    asked = []

    def download(coordinates, folder):
        asked.append(coordinates)
        serve(folder, [c for c in coordinates if "jar3" not in c or len(asked) > 2])

    monkeypatch.setattr(fetch, "download", download)
    seen = []
    assert fetch_jars("kafka", on_jar=lambda jar, what: seen.append((what, jar.name))) == jar_paths(
        "kafka"
    )
    assert asked[1:] == [["com.example:jar3:1.0"]] * 2
    assert five_jars == [2.0, 5.0]
    assert seen[4:] == [("again", "jar3-1.0.jar")] * 2 + [("fetched", "jar3-1.0.jar")]


def test_one_jar_that_cannot_be_had_does_not_keep_the_others_away(five_jars, monkeypatch):
    def download(coordinates, folder):
        if any("jar2" in each for each in coordinates):
            raise ivy.DownloadFailed("com.example#jar2;1.0: connection reset")
        serve(folder, coordinates)

    monkeypatch.setattr(fetch, "download", download)
    with pytest.raises(PreflightError) as failure:
        fetch_jars("kafka")
    assert str(failure.value) == (
        "com.example:jar2:1.0: jar2-1.0.jar could not be downloaded in 5 tries: "
        "com.example#jar2;1.0: connection reset. Check the network, or name a mirror in an Ivy "
        "settings file (export SLUICE_IVY_SETTINGS=<file>), then run `sluice jars fetch kafka`"
    )
    kept = sorted(path.name for path in jars.jars_folder().iterdir())
    assert kept == ["jar0-1.0.jar", "jar1-1.0.jar", "jar3-1.0.jar", "jar4-1.0.jar"]
    assert five_jars == list(fetch.PAUSES)


def test_a_failed_download_says_why(tmp_path, monkeypatch):
    answer = subprocess.CompletedProcess(
        [], 1, stdout=":: loading settings\n\t:: com.example#thing;1.0: not found\n", stderr=""
    )
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)
    with pytest.raises(ivy.DownloadFailed, match=r"com\.example#thing;1\.0: not found"):
        ivy.download(["com.example:thing:1.0"], tmp_path)


def test_a_mirror_is_asked_through_the_users_own_settings(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setenv("SLUICE_IVY_SETTINGS", "mirror.xml")
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda command, **_: (
            asked.append(command) or subprocess.CompletedProcess(command, 0, "", "")
        ),
    )
    ivy.download(["com.example:thing:1.0"], tmp_path)
    assert asked[0][asked[0].index("-settings") + 1] == "mirror.xml"
    assert (
        'org="com.example" name="thing" rev="1.0" transitive="false"'
        in (tmp_path / "ivy.xml").read_text()
    )


def test_a_class_archive_belongs_to_one_java_and_one_set_of_jars(tmp_path, monkeypatch):
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    plain = class_archive_path()
    assert plain.parent == cache_folder() / "archives"
    assert class_archive_path("core") == plain != class_archive_path("core", "avro")
    monkeypatch.setattr("sluice.setup.class_archive.java_version", lambda: "21.0.1")
    assert class_archive_path() != plain


def test_the_lock_is_written_once_per_jar():
    names = [entry["jar"] for entries in json.loads(LOCK.read_text()).values() for entry in entries]
    assert len(names) == len(set(names))


def test_the_class_archive_is_found_where_spark_submit_imports_pyspark_from_a_zip():
    folder = spark_jars_folder()
    (copy,) = (folder.parent / "python" / "lib").glob("pyspark.zip")
    ask = "from sluice.setup.class_archive import class_archive_path as path; print(path())"
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(copy), str(PROJECT / "include")])}
    said = subprocess.run(
        [sys.executable, "-c", ask], env=env, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == str(class_archive_path())
    assert any(folder.glob("spark-core_*.jar"))
