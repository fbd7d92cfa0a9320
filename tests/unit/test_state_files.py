"""How large a state is, by the files of its newest version alone."""

import json
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from sluice.checkpoint import Checkpoint, live_bytes, state_operators


def write(folder: Path, **sizes: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in sizes.items():
        (folder / name.replace("__", ".")).write_bytes(b"x" * size)


def snapshot(*sizes: int) -> bytes:
    files = [{"localFileName": "1.sst", "dfsSstFileName": "1-a.sst", "sizeBytes": n} for n in sizes]
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        archive.writestr("metadata", f"v1\n{json.dumps({'sstFiles': files, 'numKeys': 3})}")
    return buffer.getvalue()


def test_of_rocksdb_the_newest_snapshot_its_files_and_later_changes_count(tmp_path):
    store = tmp_path / "state" / "0" / "0"
    write(store, **{"1_a__changelog": 1000, "2_b__changelog": 2000, "3_c__changelog": 40})
    (store / "2_b.zip").write_bytes(small := snapshot(500, 70))
    (store / "1_a.zip").write_bytes(snapshot(9000))
    write(tmp_path / "state" / "0" / "1", **{"3_d__changelog": 7, "_3_d__changelog__crc": 5})
    assert live_bytes(str(tmp_path), 0) == len(small) + 570 + 40 + 7


def test_of_the_hdfs_backed_store_every_store_of_a_join_counts(tmp_path):
    for number, side in enumerate(("left-keyToNumValues", "right-keyToNumValues")):
        write(
            tmp_path / "state" / "0" / "0" / side,
            **{"1__delta": 1, "2__snapshot": 20 + number, "2__delta": 3, "3__delta": 5},
        )
    assert live_bytes(str(tmp_path), 0) == 20 + 5 + 21 + 5
    assert live_bytes(str(tmp_path), 7) == 0


def test_a_damaged_snapshot_has_no_size(tmp_path):
    write(tmp_path / "state" / "0" / "0", **{"2_b__zip": 20})
    assert live_bytes(str(tmp_path), 0) is None


def test_operators_are_known_by_their_notes(tmp_path):
    assert state_operators(str(tmp_path)) == {}
    note = tmp_path / "state" / "1" / "_metadata" / "metadata"
    note.parent.mkdir(parents=True)
    told = {"operatorInfo": {"operatorId": 1, "operatorName": "dedupe"}, "stateStoreInfo": []}
    note.write_text(f"v1\n{json.dumps(told)}")
    assert state_operators(str(tmp_path)) == {1: "dedupe"}


@pytest.mark.parametrize("conf", [{"a.b": "1"}, None])
def test_the_settings_that_a_checkpoint_keeps_are_those_of_its_newest_batch(tmp_path, conf):
    assert Checkpoint(tmp_path).settings == {}
    (tmp_path / "offsets").mkdir()
    for number, told in enumerate(({"a.b": "0"}, conf)):
        batch = {"batchWatermarkMs": 0, "batchTimestampMs": 1, **({"conf": told} if told else {})}
        (tmp_path / "offsets" / str(number)).write_text(f"v1\n{json.dumps(batch)}\n{{}}")
    assert Checkpoint(tmp_path).settings == (conf or {})
