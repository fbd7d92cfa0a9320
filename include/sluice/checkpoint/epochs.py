"""Makes the notes of continuous mode readable for micro-batches.

Continuous mode notes its place without the metadata (watermark, time, settings) that a query of
micro-batches starts from. Spark 4.2 then ends with "Cannot invoke
WatermarkTracker.currentWatermark() because the return value of
MicroBatchExecution.watermarkTracker() is null". Such a query has no watermark and no state, so the
metadata of a query that has seen no time yet is the true one.
"""

import json
import time

from ..storage import forget_checksum, open_path, replace_file


def complete_epochs(checkpoint: str) -> None:
    """Give the two newest notes of a checkpoint (`<checkpoint>/spark`) their metadata where they
    have none: from these a query goes on. Call it under the lease."""
    folder = open_path(checkpoint) / "offsets"
    try:
        numbers = sorted(int(path.name) for path in folder.iterdir() if path.name.isdigit())
    except (FileNotFoundError, NotADirectoryError):
        return
    for number in numbers[-2:]:
        path = folder / str(number)
        version, metadata, *offsets = path.read_text(encoding="utf-8").split("\n")
        if metadata or not offsets:
            continue
        forget_checksum(path)
        note = {"batchWatermarkMs": 0, "batchTimestampMs": int(time.time() * 1000), "conf": {}}
        replace_file(path, "\n".join([version, json.dumps(note), *offsets]))
