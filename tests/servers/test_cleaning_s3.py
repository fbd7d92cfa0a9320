"""Files that were read leave a landing folder in a bucket as they leave one on a disk; no Spark."""

import json
from uuid import uuid4

from sluice.backlog import clean_step, list_files
from sluice.spec import Step
from sluice.storage import open_path


def test_objects_that_were_read_go_to_the_archive_and_never_over_another(s3):
    bucket = s3.create_bucket(f"clean-{uuid4().hex[:12]}")
    landing, archive, home = f"{bucket}/in", f"{bucket}/old", f"{bucket}/checkpoint"
    for name in ("a b", "day=1/b", "c", "d", "open"):
        s3.put(f"{landing}/{name}", name * 1000)
    s3.put(f"{archive}/c", "c" * 1000)  # copied by a run that was killed before it removed it
    s3.put(f"{archive}/d", "D" * 1000)
    source = {"path": landing, "format": "text", "schema": {"value": "string"}}
    source |= {"clean_source": "archive", "archive": archive}
    step = Step.model_validate({"name": "s", "source": source})
    times = {file.path: int(file.modified * 1000) for file in list_files(step.source)}
    for number, names in enumerate([["a b", "day=1/b", "c", "d"], ["open"]]):
        entries = [
            {
                "path": f"{landing}/{name}".replace(" ", "%20"),
                "timestamp": times[f"{landing}/{name}"],
                "batchId": number,
            }
            for name in names
        ]
        write(s3, f"{home}/spark/sources/0/{number}", *entries)
        plan = {"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {}}
        write(s3, f"{home}/spark/offsets/{number}", plan, {"logOffset": number})
    write(s3, f"{home}/spark/commits/0", {"nextBatchWatermarkMs": 0})
    for _ in range(2):
        (told,) = clean_step(step, home, (), lambda: True)
        assert "1 file(s)" in told and f"{archive}/d" in told
    assert [file.name for file in list_files(step.source)] == ["d", "open"]
    archived = sorted(
        f.path.removeprefix(archive)
        for f in list_files(step.source.model_copy(update={"path": archive}))
    )
    assert archived == ["/a b", "/c", "/d", "/day=1/b"]
    assert open_path(f"{archive}/d").read_text() == "D" * 1000


def write(s3, path: str, *lines: dict) -> None:
    s3.put(path, "v1\n" + "\n".join(json.dumps(line) for line in lines))
