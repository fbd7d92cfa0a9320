"""Steps that do not wait for each other run at once, and each is told as if it had run alone."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier, Event, main_thread

import pytest
import yaml
from sluice.errors import ExitCode
from sluice.report import Outcome, RunReport, StepReport
from sluice.runner import run_pipeline
from sluice.spec import RunRequest
from sluice.streaming import step as steps

PATIENCE = 120
"""Seconds for which one step waits for the other: far more than it takes."""
HOURLY = """SELECT window(at, '1 hour').start AS hour, count(*) AS n FROM rows
  GROUP BY window(at, '1 hour')"""
"""Both steps call their input `rows`."""


@dataclass
class Town:
    """Two steps, each with hours of a folder of its own, and a third one that reads the first."""

    folder: Path
    runs: list[RunReport] = field(default_factory=list)

    def land(self, step: str, *files: list[str]) -> None:
        """Files of times of a day, each a batch."""
        place = self.folder / step
        place.mkdir(exist_ok=True)
        for times in files:
            number = len(list(place.iterdir()))
            path = place / f"{number}.json"
            path.write_text("".join(json.dumps({"at": f"{t}:00Z"}) + "\n" for t in times))
            os.utime(path, (1_000_000 + number, 1_000_000 + number))

    def write(self, most: int) -> Path:
        hourly = [self._hours("east", "30 minutes"), self._hours("west", "10 minutes")]
        reader = {"name": "copy", "source": {"kind": "table", "step": "east"}}
        told = {"name": "town", "parallel_steps": most, "steps": [*hourly, reader]}
        (self.folder / "hours.sql").write_text(HOURLY)
        file = self.folder / "town.yaml"
        file.write_text(yaml.safe_dump(told, sort_keys=False))
        return file

    def _hours(self, name: str, watermark: str) -> dict:
        source = {
            "path": str(self.folder / name),
            "format": "json",
            "schema": {"at": "timestamp"},
            "max_files_per_batch": 1,
        }
        timed = {"source": source, "event_time": {"column": "at"}, "watermark": watermark}
        rule = {
            "type": "expect_column_sum_to_be_between",
            "kwargs": {"column": "n", "max_value": 2},
        }
        step = {"inputs": {"rows": timed}, "transform": "hours.sql", "rules": [rule]}
        return {"name": name, **step}

    def run(self, most: int = 2, root: str = "root", run_id: str | None = None) -> RunReport:
        named = {"run_id": run_id} if run_id else {}
        place = {"pipeline": str(self.write(most)), "root": str(self.folder / root)}
        report = run_pipeline(RunRequest(**place, **named))
        report.check()
        self.runs.append(report)
        return report

    def rows(self, spark, step: str, root: str = "root") -> Counter:
        table = self.folder / root / "tables" / "town" / step
        rows = spark.read.format("delta").load(str(table)).select("hour", "n").collect()
        return Counter((row.hour.isoformat()[:16], row.n) for row in rows)


@pytest.fixture
def town(tmp_path) -> Town:
    made = Town(tmp_path)
    made.land("east", at("01", 10, 20, 40), at("04", 5), at("05", 0), at("01", 50, 55))
    late = [*at("11", 1, 2, 3), *at("12", 5), *at("13", 50)]
    made.land("west", at("11", 10, 40), at("13", 20), at("13", 30), late)
    return made


def at(hour: str, *minutes: int) -> list[str]:
    return [f"2026-01-01T{hour}:{minute:02}" for minute in minutes]


def around_batches(monkeypatch, act: Callable[[str, int, Callable], object]) -> None:
    """Have `act` called with the step and the number of each batch, and what takes it."""
    take = steps.take_batch

    def taken(course, plan, rows, number):
        return act(course.step.name, number, lambda: take(course, plan, rows, number))

    monkeypatch.setattr(steps, "take_batch", taken)


def told(step: StepReport) -> dict:
    """What a report says of a step, but for times and places."""
    of_batch = {"counts", "inputs", "watermark_ms", "event_time_min", "event_time_max", "files"}
    wanted = {"name", "counts", "rules", "refusals", "inputs", "held", "watermark_after_ms"}
    batches = {"batches": {"__all__": of_batch}}
    told = step.model_dump(mode="json", include={**dict.fromkeys(wanted, True), **batches})
    for held in told["held"]:  # how well it was compressed is chance
        del held["bytes"]
    return told


def test_each_of_two_steps_at_once_is_told_as_if_it_had_run_alone(spark, town, monkeypatch):
    alone = town.run(most=1, root="alone", run_id="same")
    meeting, pools = Barrier(2), {}

    def meet(step: str, number: int, take: Callable) -> object:
        if step != "copy" and number < 4:
            meeting.wait(PATIENCE)  # passes only where the other has a batch in work as well
        pools.setdefault(step, set()).add(
            spark.sparkContext.getLocalProperty("spark.scheduler.pool")
        )
        return take()

    around_batches(monkeypatch, meet)
    both = town.run(run_id="same")
    assert (both.status, both.error, meeting.broken) == ("done", None, False)
    assert pools == {"east": {"east"}, "west": {"west"}, "copy": {"copy"}}
    assert [step.name for step in both.steps] == ["east", "west", "copy"]
    assert [told(step) for step in both.steps] == [told(step) for step in alone.steps]
    assert [step.counts.late_groups for step in both.steps] == [1, 2, 0]
    verdicts = [rule.outcome for step in both.steps[:2] for rule in step.rules]
    assert verdicts == [Outcome.FAILED, Outcome.PASSED]
    assert len({step.watermark_after_ms for step in both.steps[:2]}) == 2
    for step in ("east", "west", "copy"):
        assert town.rows(spark, step) == town.rows(spark, step, "alone") != Counter()


def test_a_step_that_dies_between_note_and_commit_leaves_the_other_and_loses_nothing(
    spark, town, monkeypatch
):
    with monkeypatch.context() as once:
        west_is_done = Event()

        def die(step: str, number: int, take: Callable) -> object:
            entry = take()
            if step == "west" and number == 3:
                west_is_done.set()
            if step == "east" and number == 2:  # the first that closes an hour
                assert west_is_done.wait(PATIENCE)
                raise OSError("gone")
            return entry

        around_batches(once, die)
        first = town.run()
    assert (first.status, first.exit_code) == ("failed", ExitCode.TRANSIENT)
    assert first.error.startswith("step east: ") and "gone" in first.error
    assert first.error.endswith("Not started, because they wait for it: copy.")
    assert [step.name for step in first.steps] == ["east", "west"]
    assert first.steps[1].counts.read == 9 and len(first.steps[0].batches) == 2
    second = town.run()
    assert (second.status, second.error) == ("done", None)
    batches = [(b.batch_id, b.replayed) for b in second.steps[0].batches[:2]]
    assert batches == [(2, True), (3, False)]
    assert first.steps[0].counts.read + second.steps[0].counts.read == 7
    hours = {step: town.rows(spark, step) for step in ("east", "west", "copy")}
    east, west = Counter([("2026-01-01T01:00", 3)]), Counter([("2026-01-01T11:00", 2)])
    assert hours == {"east": east, "west": west, "copy": east}


def test_ctrl_c_ends_every_step_and_lets_go_of_what_the_run_held(spark, town, monkeypatch):
    meeting, ended = Barrier(2), []

    def interrupt(step: str, number: int, take: Callable) -> object:
        meeting.wait(PATIENCE)
        if step == "east":
            signal.pthread_kill(main_thread().ident, signal.SIGINT)  # as a terminal does
        try:
            return take()
        finally:
            ended.append(step)

    with monkeypatch.context() as once:
        around_batches(once, interrupt)
        with pytest.raises(KeyboardInterrupt):
            town.run()
    assert sorted(set(ended)) == ["east", "west"]
    assert spark._jsparkSession.sharedState().activeStreamingQueries().isEmpty()
    assert town.run().status == "done"
    assert [step.counts.read for step in town.runs[-1].steps[:2]] == [7, 9]
