"""The laws of the README, each by its name."""

import os
import random
import shutil
import time
from collections import Counter

import pytest
from botocore.exceptions import EndpointConnectionError
from sluice.checkpoint import Checkpoint
from sluice.errors import ExitCode
from sluice.report import Counts
from sluice.streaming import parts as parts_module

from tests.spark.shop import RULES, Shop, order

pytestmark = pytest.mark.usefixtures("two_partitions")


def test_law_1_every_row_has_exactly_one_fate(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(
        order(1),
        order(1),
        order(2),
        order(3, amount=-1.0),
        "{broken",
        order(4, at=None),
        {**order(5), "order_id": None},
        order(6, at="2099-01-01T00:00:00Z"),
    )
    shop.land(order(2), order(3, amount=-1.0), "{broken", "", "   ")
    report = shop.run()
    counts = report.counts
    assert (counts.read, counts.written, counts.quarantined, counts.duplicate, counts.late) == (
        11,
        2,
        5,
        4,
        0,
    )
    assert shop.ids(spark) == ["o1", "o2"]
    assert shop.reasons(spark) == {
        ("amount_not_negative",): 1,
        ("malformed",): 1,
        ("null_time",): 1,
        ("null_key",): 1,
        ("future_time",): 1,
    }


def test_law_2_cutting_the_backlog_differently_changes_nothing(spark, tmp_path):
    rng = random.Random(7)
    lines = [
        order(rng.randrange(60), day=1 + rng.randrange(2), amount=float(rng.randrange(-1, 5)))
        for _ in range(200)
    ]
    lines = [
        {
            **line,
            "amount": float(int(line["order_id"][1:]) % 6 - 1),
            "at": f"2026-01-01T{int(line['order_id'][1:]) % 24:02d}:00:00Z",
        }
        for line in lines
    ]
    tables, totals = [], []
    for name, cuts, bound in (
        ("one", [200], None),
        ("five", [40, 7, 1, 100, 52], None),
        ("bounded", [40, 7, 1, 100, 52], 1),
    ):
        shop, done, counts = (
            Shop(tmp_path / name, source={"max_files_per_batch": bound} if bound else None),
            0,
            None,
        )
        for cut in cuts:
            shop.land(*lines[done : done + cut])
            done += cut
            if name != "bounded":
                report = shop.run()
                counts = report.counts if counts is None else counts + report.counts
        counts = shop.run().counts if name == "bounded" else counts
        tables.append((shop.rows(spark), shop.rows(spark, "paid__quarantine", ("row", "reasons"))))
        totals.append((counts.read, counts.written, counts.quarantined, counts.duplicate))
    assert tables[0] == tables[1] == tables[2]
    assert totals[0] == totals[1] == totals[2]


def test_law_3_a_replayed_batch_changes_nothing_and_reports_the_same_counts(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(order(1), order(1), order(2, amount=-1.0), "{broken", order(3))
    first = shop.run("first")
    before = (shop.rows(spark), shop.reasons(spark))
    commits = shop.root / "checkpoints" / "orders" / "paid" / "spark" / "commits"
    for name in (
        "0",
        ".0.crc",
    ):  # as if the process had died between the table's commit and the checkpoint's
        (commits / name).unlink(missing_ok=True)
    again = shop.run("again")
    assert (shop.rows(spark), shop.reasons(spark)) == before
    assert again.counts == first.counts
    assert [b.replayed for b in again.steps[0].batches] == [True]
    assert [(r.evaluated, r.unexpected) for r in again.steps[0].rules] == [
        (r.evaluated, r.unexpected) for r in first.steps[0].rules
    ]


def test_a_crash_between_quarantine_and_target_is_finished_by_the_next_run(
    spark, tmp_path, monkeypatch
):
    shop = Shop(tmp_path)
    shop.land(order(1), order(1), order(2, amount=-1.0), "{broken")

    def die(*_: object) -> None:
        raise OSError("the machine went away")

    with monkeypatch.context() as patch:
        patch.setattr(parts_module, "_write_target", die)
        report = shop.run()
    assert report.status == "failed" and report.exit_code is ExitCode.TRANSIENT
    assert sum(shop.reasons(spark).values()) == 2 and shop.ids(spark) == []
    report = shop.run()
    assert (
        report.counts.read,
        report.counts.written,
        report.counts.quarantined,
        report.counts.duplicate,
    ) == (4, 1, 2, 1)
    assert sum(shop.reasons(spark).values()) == 2 and shop.ids(spark) == ["o1"]


def test_a_run_that_died_before_its_report_is_reported_by_the_next(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(order(1), order(2), order(2))
    first = shop.run("dead")
    shutil.rmtree(shop.root / "reports")
    report = shop.run("next")
    assert report.status == "done" and report.counts == first.counts
    assert shop.run("third").status == "nothing new"


def test_a_retry_of_a_run_reports_all_its_batches(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(order(1), order(2))
    shop.run("same")
    shop.land(order(3))
    report = shop.run("same")
    assert report.counts.read == 3 and [b.batch_id for b in report.steps[0].batches] == [0, 1]


def test_a_copy_is_a_duplicate_in_whichever_run_it_comes(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(order(1), order(2, amount=-2.0), "{broken")
    shop.run()
    shop.land(order(1), order(2, amount=-2.0), "{broken", order(3))
    report = shop.run()
    assert (report.counts.written, report.counts.quarantined, report.counts.duplicate) == (1, 0, 3)
    assert shop.ids(spark) == ["o1", "o3"] and sum(shop.reasons(spark).values()) == 2


def test_law_4_a_backfill_never_touches_scheduled_state(spark, tmp_path):
    shop = Shop(tmp_path, source={"file_date": "%Y-%m-%d"})
    for day in range(1, 6):
        (shop.landing / f"2026-01-{day:02d}.json").write_text(
            f'{{"order_id": "o{day}", "amount": 1, "at": "2026-01-{day:02d}T12:00:00Z"}}\n'
        )
    shop.run()
    whole = shop.rows(spark)
    spark.sql(
        f"DELETE FROM delta.`{shop.root}/tables/orders/paid` "
        "WHERE at >= '2026-01-02' AND at < '2026-01-05'"
    )
    checkpoint = shop.root / "checkpoints" / "orders" / "paid"
    before = {
        p.relative_to(checkpoint): p.read_bytes()
        for p in sorted(checkpoint.rglob("*"))
        if p.is_file()
    }
    window = {"start": "2026-01-02", "end": "2026-01-05"}
    for write, written in (("merge", 3), ("merge", 0), ("replace", 3), ("replace", 3)):
        report = shop.run(window=window, write=write)
        assert report.kind == "backfill" and report.status == "done", report.error
        assert (report.counts.read, report.counts.written) == (3, written)
        assert shop.rows(spark) == whole
    assert before == {
        p.relative_to(checkpoint): p.read_bytes()
        for p in sorted(checkpoint.rglob("*"))
        if p.is_file()
    }
    assert not list((shop.root / "backfills").rglob("offsets"))


def test_a_backfill_whose_report_could_not_be_stored_is_reported_when_its_task_is_tried_again(
    spark, tmp_path, monkeypatch
):
    shop = Shop(tmp_path, source={"file_date": "%Y-%m-%d"})
    (shop.landing / "2026-01-02.json").write_text(
        '{"order_id": "o1", "amount": 1, "at": "2026-01-02T12:00:00Z"}\n'
    )

    def refuse(*_: object) -> None:
        raise EndpointConnectionError(endpoint_url="http://the-bucket")

    window = {"start": "2026-01-02", "end": "2026-01-03"}
    with monkeypatch.context() as patch:
        patch.setattr("sluice.report.publish.write_report", refuse)
        report = shop.run("first", window=window)
    assert (
        report.exit_code is ExitCode.TRANSIENT and "the report could not be written" in report.error
    )
    assert shop.ids(spark) == ["o1"] and list((shop.root / "backfills").rglob("offsets"))
    report = shop.run("first", window=window)
    assert report.counts == Counts(read=1, entered=1, made=1, written=1)
    assert shop.ids(spark) == ["o1"] and not list((shop.root / "backfills").rglob("offsets"))


def test_a_stop_rule_refuses_the_batch_before_anything_is_written(spark, tmp_path):
    stop = {
        "type": "expect_column_values_to_be_between",
        "kwargs": {"column": "amount", "max_value": 100},
        "on_fail": "stop",
        "name": "amount_plausible",
    }
    shop = Shop(tmp_path, rules=[*RULES, stop])
    shop.land(order(1))
    shop.run()
    bad = shop.land(order(2), order(3, amount=-1.0), order(4, amount=1000.0))
    before = (
        shop.rows(spark),
        shop.reasons(spark),
        Checkpoint(shop.root / "checkpoints/orders/paid/spark").newest_commit,
    )
    report = shop.run()
    assert (
        report.exit_code is ExitCode.STOPPED_BY_RULE
        and report.status == "stopped by a rule"
        and "amount_plausible" in report.error
    )
    assert (
        shop.rows(spark),
        shop.reasons(spark),
        Checkpoint(shop.root / "checkpoints/orders/paid/spark").newest_commit,
    ) == before
    bad.write_text(bad.read_text().replace("1000.0", "10.0"))
    report = shop.run()
    assert (report.counts.read, report.counts.written, report.counts.quarantined) == (3, 2, 1)


def test_law_5_a_rule_that_could_not_be_evaluated_is_not_a_pass(spark, tmp_path):
    shop = Shop(
        tmp_path,
        rules=[
            {
                "type": "expect_column_mean_to_be_between",
                "kwargs": {"column": "order_id", "min_value": 1},
                "on_fail": "warn",
            }
        ],
    )
    shop.land(order(1))
    report = shop.run()
    assert [r.outcome.value for r in report.steps[0].rules] == [
        "could not evaluate"
    ] and report.blocks


def test_a_table_rule_that_great_expectations_refuses_ends_the_run_before_anything_is_read(
    spark, tmp_path
):
    shop = Shop(
        tmp_path,
        rules=[
            {
                "type": "expect_column_max_to_be_between",
                "kwargs": {"column": "amount", "minimum": 1},
                "on_fail": "warn",
            }
        ],
    )
    shop.land(order(1))
    report = shop.run()
    assert report.exit_code is ExitCode.TERMINAL and "minimum" in report.error, report.steps[
        0
    ].rules
    assert shop.ids(spark) == []


def test_law_6_a_backfill_out_of_time_is_to_be_tried_again_and_its_next_try_goes_on(
    spark, tmp_path
):
    shop = Shop(tmp_path, source={"max_files_per_batch": 1})
    for number in range(3):
        shop.land(order(number))
    shop.write(budget="0 seconds")
    asked = {"window": {"start": "2026-01-01", "end": "2026-02-01"}}
    report = shop.run("again", **asked)
    assert (report.status, report.exit_code) == ("out of time", ExitCode.TRANSIENT)
    assert "goes on where this one stopped" in report.error and report.counts.read < 3
    shop.write()
    again = shop.run("again", **asked)
    assert (again.exit_code, again.counts.read) == (ExitCode.DONE, 3)
    assert shop.ids(spark) == ["o0", "o1", "o2"]


def test_law_6_a_run_out_of_time_stops_between_batches_and_the_next_goes_on(spark, tmp_path):
    shop = Shop(tmp_path, source={"max_files_per_batch": 1})
    for number in range(3):
        shop.land(order(number))
    shop.write(budget="0 seconds")
    report = shop.run()
    assert (
        report.status == "out of time"
        and report.steps[0].left_for_next_run
        and report.counts.read < 3
    )
    shop.write()
    report = shop.run()
    assert report.status == "done" and shop.ids(spark) == ["o0", "o1", "o2"]


def test_law_8_a_poison_timestamp_does_not_move_the_watermark(spark, tmp_path):
    shop = Shop(tmp_path, dedup={"late": "keep"})
    shop.land(
        order(1, day=10), order(2, at="2099-01-01T00:00:00Z"), order(3, at="9999-12-31T23:59:59Z")
    )
    shop.run()
    shop.land(order(4, day=9))
    report = shop.run()
    assert report.counts.late == 0 and shop.ids(spark) == ["o1", "o4"]
    assert (
        report.steps[0].watermark_before_ms == 1767830400000 + 3600_000
    )  # 2026-01-10 01:00 less two days


def test_law_8_poison_timestamps_in_the_middle_of_a_batch_change_no_other_rows_fate(
    spark, tmp_path
):
    poison = [
        order(1, at=at, amount=float(n))
        for n, at in enumerate(
            [
                "2099-01-01T00:00:00Z",
                "9999-12-31T23:59:59Z",
                None,
                "0000-01-01T00:00:00Z",
                "2026-02-30T00:00:00Z",
            ]
        )
    ]
    days = [
        [order(1, day=10), order(2, day=10), order(3, day=9, amount=-1.0), order(1, day=10)],
        [order(2, day=10), order(4, day=11), order(5, day=2), order(6, day=8)],
    ]
    fates = []
    for name, added in (("clean", []), ("poisoned", poison)):
        shop, reports = Shop(tmp_path / name, dedup={"late": "keep"}), []
        for rows in days:
            shop.land(*rows[:2], *added, *rows[2:])
            reports.append(shop.run())
        refused = +Counter(
            {
                reasons: count
                for reasons, count in shop.reasons(spark).items()
                if reasons == ("amount_not_negative",)
            }
        )
        counts = [
            (
                r.counts.written,
                r.counts.late,
                r.counts.quarantined + r.counts.duplicate - len(added),
            )
            for r in reports
        ]
        fates.append(
            (
                shop.rows(spark),
                shop.rows(spark, "paid__late"),
                refused,
                counts,
                [r.steps[0].watermark_after_ms for r in reports],
            )
        )
    assert fates[0] == fates[1]
    assert sum(fates[0][0].values()) == 4 and sum(fates[0][1].values()) == 1
    assert sum(shop.reasons(spark).values()) == 1 + len(poison)


@pytest.mark.parametrize(
    ("policy", "written", "late", "ids"),
    [("merge", 1, 0, ["o1", "o2"]), ("keep", 0, 1, ["o1"]), ("drop", 0, 1, ["o1"])],
)
def test_late_rows_go_where_the_policy_says(spark, tmp_path, policy, written, late, ids):
    shop = Shop(tmp_path, dedup={"late": policy})
    shop.land(order(1, day=20))
    shop.run()
    shop.land(order(2, day=2))
    report = shop.run()
    assert (report.counts.written, report.counts.late, report.counts.late_merged) == (
        written,
        late,
        1 - late,
    )
    assert shop.ids(spark) == ids
    kept = shop.rows(spark, "paid__late", ("order_id", "_late_by_seconds"))
    assert kept == ({("o2", 16 * 86400.0 - 3600): 1} if policy == "keep" else {})


def test_memory_state_gives_the_same_table_when_nothing_is_late(spark, tmp_path):
    lines = [order(n % 30, day=1 + n % 3, amount=float(n % 30 - 1)) for n in range(0, 90)]
    lines = [
        {**line, "at": f"2026-01-01T{int(line['order_id'][1:]) % 24:02d}:00:00Z"} for line in lines
    ]
    tables, counts = [], []
    for memory in ("table", "state"):
        shop, total = Shop(tmp_path / memory, dedup={"memory": memory}), None
        for cut in (lines[:40], [*lines[40:70], "{broken"], [*lines[70:], "{broken"]):
            shop.land(*cut)
            report = shop.run()
            assert report.status == "done", report.error
            total = report.counts if total is None else total + report.counts
        tables.append((shop.rows(spark), shop.reasons(spark)))
        counts.append((total.read, total.written, total.quarantined, total.duplicate, total.late))
    assert tables[0] == tables[1] and counts[0] == counts[1]


def test_append_without_dedup_keeps_every_row(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.step |= {"dedup": None, "sink": {"mode": "append"}}
    shop.write()
    shop.land(order(1), order(1), order(2, amount=-1.0), order(2, amount=-1.0))
    report = shop.run()
    assert (report.counts.written, report.counts.quarantined, report.counts.duplicate) == (2, 2, 0)
    assert shop.ids(spark) == ["o1", "o1"]


def test_a_run_that_is_due_after_a_week_without_news_is_due_once(spark, tmp_path):
    shop = Shop(tmp_path)
    shop.land(order(1))
    shop.run()
    week_ago = time.time() - 8 * 86_400
    for commit in (shop.root / "checkpoints" / "orders" / "paid" / "spark" / "commits").iterdir():
        os.utime(commit, (week_ago, week_ago))
    due = shop.run("due")
    assert (due.status, due.counts.read) == ("done", 0)
    assert shop.run("idle").status == "nothing new"
