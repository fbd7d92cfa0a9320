"""The worked pipeline `logs` against plain Python, over what the demo lands and over real logs."""

import gzip
import shutil
from collections import Counter
from datetime import datetime

import pytest
from sluice.demo.logs import generate_landings
from sluice.runner import run_pipeline
from sluice.spec import RunRequest
from sluice.storage import PIPELINES

from tests.shared_data import find_shared
from tests.spark.worked import drive

LEVELS = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}


def is_head(line: str) -> bool:
    """Whether a line begins with a time."""
    date, _, rest = line.partition(" ")
    parts = date.replace("/", "-").split("-")
    return len(parts) == 3 and "".join(parts).isdigit() and rest[2:3] == ":"


def read_records(text: str) -> list[str]:
    """The records of a file: a head with all lines up to the next one."""
    records: list[str] = []
    for line in text.splitlines():
        if is_head(line) or not records:
            records.append(line)
        else:
            records[-1] += "\n" + line
    return records


def read_record(application: str, record: str) -> tuple | None:
    """(application, time, level, thread, logger, message, stack trace); None without a time."""
    head, _, trace = record.partition("\n")
    if not is_head(head):
        return None
    date, time, level, rest = head.split(" ", 3)
    layout = "%y/%m/%d %H:%M:%S" if "/" in date else "%Y-%m-%d %H:%M:%S,%f"
    at = datetime.strptime(f"{date} {time}", layout)
    at = at.replace(year=at.year + 100) if at.year < 2000 else at  # Python takes 99 for 1999
    thread = None
    if rest.startswith("["):
        thread, rest = rest[1:].split("] ", 1)
    logger, message = rest.split(": ", 1)
    return application, at, level, thread, logger, message or None, trace or None


def judge(row: tuple | None) -> str:
    """What becomes of the first copy of a record: `written`, or the reason it is refused."""
    if row is None:
        return "null_time"
    if row[1].year > 2090:
        return "future_time"
    if row[2] not in LEVELS:
        return "level_known"
    return "written" if row[5] else "message_present"


@pytest.fixture(scope="module")
def expected() -> tuple[list[Counter], Counter]:
    """The fates of each landing, and the records that are written."""
    seen, fates, kept = set(), [], Counter()
    for landing in generate_landings():
        fate = Counter()
        for name, content in landing.files.items():
            data = gzip.decompress(content) if name.endswith(".gz") else content
            application = name.rsplit("/", 1)[-1].partition(".log")[0]
            for record in read_records(data.decode(errors="surrogateescape")):
                broken = any("\udc80" <= character <= "\udcff" for character in record)
                row = None if broken else read_record(application, record)
                verdict = "malformed" if broken else judge(row)
                identity = row or record
                verdict = "duplicate" if identity in seen else verdict
                seen.add(identity)
                fate[verdict] += 1
                kept.update([row] if verdict == "written" else [])
        fates.append(fate)
    return fates, kept


@pytest.fixture(scope="module")
def driven(spark, tmp_path_factory):
    return drive(spark, "logs", tmp_path_factory.mktemp("logs"))


COLUMNS = ("application", "at", "level", "thread", "logger", "message", "stack_trace")


def test_each_day_has_the_fates_that_plain_python_counts(driven, expected):
    for counts, fate in zip(driven.counts("records"), expected[0], strict=True):
        assert counts.read == fate.total()
        assert (counts.written, counts.malformed) == (fate["written"], fate["malformed"])
        assert (counts.duplicate, counts.late) == (fate["duplicate"], 0)
        assert counts.quarantined == fate.total() - fate["written"] - fate["duplicate"]
    assert [fate["duplicate"] > 0 for fate in expected[0]] == [False, True, True]


def test_the_table_holds_each_record_once_with_its_whole_stack_trace(driven, expected):
    rows = driven.rows("records", *COLUMNS)
    assert rows == expected[1]
    traces = [row[-1] for row in rows if row[-1]]
    assert len(traces) > 100 and all("Caused by" in trace for trace in traces)
    exceptions = driven.rows("records", "(exception IS NULL) = (stack_trace IS NULL)")
    assert exceptions == Counter({(True,): len(rows)})


def test_the_quarantine_holds_each_refused_record_with_its_reason(driven, expected):
    fates = sum(expected[0], Counter())
    reasons = {r: n for r, n in fates.items() if r not in ("written", "duplicate")}
    found = driven.reasons("records")
    # what has no layout has no level and no message either
    assert found == {
        **reasons,
        "level_known": reasons["level_known"] + reasons["null_time"],
        "message_present": reasons["message_present"] + reasons["null_time"],
    }
    traces = driven.rows("records__quarantine", "row").keys()
    assert any("\tat org.apache" in row and "Caused by" in row for (row,) in traces)
    assert "nothing_fatal" in driven.failed(0)
    assert driven.is_on_its_page


def test_real_logs_of_hadoop_and_spark_are_read_to_the_last_line(spark, tmp_path, monkeypatch):
    folder = find_shared("logs")
    if folder is None:
        pytest.skip("the samples of real logs are not here")
    expected = Counter()
    (tmp_path / "logs").mkdir()
    for name in ("hadoop", "spark"):
        shutil.copy(folder / f"{name}.log", tmp_path / "logs")
        text = (folder / f"{name}.log").read_text()
        expected.update(read_record(name, record) for record in read_records(text))
    monkeypatch.setenv("LANDING", str(tmp_path))
    request = RunRequest(pipeline=str(PIPELINES / "logs" / "logs.yaml"), root=str(tmp_path / "r"))
    report = run_pipeline(request)
    counts = report.counts
    assert (report.error, counts.read, counts.quarantined) == (None, expected.total(), 0)
    assert (counts.written, counts.duplicate) == (len(expected), expected.total() - len(expected))
    table = spark.read.format("delta").load(f"{tmp_path}/r/tables/logs/records").select(*COLUMNS)
    assert Counter(map(tuple, table.collect())) == Counter(expected.keys())
