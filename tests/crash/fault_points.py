"""Every durable operation of a run, and every way in which it can be cut or fail there.

A shop plays such a run and the runs after it.
"""

import os
import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import ExitCode, SluiceError
from sluice.report import Counts, list_reports

from tests.crash.power import Power
from tests.spark.shop import Shop, order

CUTS, FAULTS = ("before", "after"), ("disk full", "I/O error", "partial write")


@dataclass(frozen=True)
class Operation:
    """A durable operation: `path` finds what it puts (or removes).

    `shop`: `running` has had a run, `new` has not and keeps late rows, nor has `rows`, whose tables
    are made by their first ones, `late` keeps late rows, `state` keeps its keys in a state store,
    `archive` and `delete` clean their landing folder, `long` has a long log of files.
    """

    name: str
    path: str
    shop: str = "running"
    verb: str = "put"
    side: str = "JVM"

    @property
    def moments(self) -> tuple[str, ...]:
        """The moments that an operation has: neither a removal nor a move writes bytes."""
        return ("before", *(FAULTS if self.verb == "put" else ("I/O error",)), "after")


OPERATIONS = [
    Operation("lease", r"/lease/\d+\.json$", side="Python"),
    Operation("manifest", r"/manifest\.json$", "new", side="Python"),
    Operation("first commit of the target table", r"/paid/_delta_log/0{20}\.json$", "new"),
    Operation("first commit of the late table", r"/paid__late/_delta_log/0{20}\.json$", "new"),
    Operation("checkpoint metadata", r"/spark/metadata$", "new"),
    Operation(
        "first commit of a quarantine table, with rows",
        r"/paid__quarantine/_delta_log/0{20}\.json$",
        "rows",
    ),
    Operation(
        "first commit of a target table, with rows", r"/paid/_delta_log/0{20}\.json$", "rows"
    ),
    Operation(
        "removal of a reported batch's note", r"/journal/\d+\.json$", verb="remove", side="Python"
    ),
    Operation("file source log", r"/spark/sources/0/\d+$"),
    Operation("offsets", r"/spark/offsets/\d+$"),
    Operation("state store", r"/spark/state/.*\.changelog$", "state"),
    Operation("note of a batch's try", r"/attempt\.json$", side="Python"),
    Operation("note of how batches are cut", r"/stretches/\d+\.json$", "late", side="Python"),
    Operation("quarantine table commit", r"/paid__quarantine/_delta_log/\d+\.json$"),
    Operation("late table commit", r"/paid__late/_delta_log/\d+\.json$", "late"),
    Operation("data file of the target table", r"/paid/[^_].*\.parquet$"),
    Operation("target table commit", r"/paid/_delta_log/\d+\.json$"),
    Operation("batch note", r"/journal/\d+\.json$", side="Python"),
    Operation("commits", r"/spark/commits/\d+$"),
    Operation("commits after a state store's batch", r"/spark/commits/\d+$", "state"),
    Operation("report page", r"/reports/.*\.html$", side="Python"),
    Operation("report", r"/reports/.*\.json$", side="Python"),
    Operation("mark of the target", r"/target\.json$", side="Python"),
    Operation(
        "note of a file that nobody can read", r"/unreadable/[0-9a-f]+$", "archive", side="Python"
    ),
    Operation("move of a read file", r"/archive/\d+\.json$", "archive", "move", "Python"),
    Operation("list of files that were read", r"/spark/seen/\d+$", "long", side="Python"),
    Operation("note that Spark's log is cut down", r"/manifest\.json$", "long", side="Python"),
    Operation(
        "removal of a checksum of Spark's log",
        r"/spark/sources/0/\.\d+\.crc$",
        "long",
        "remove",
        "Python",
    ),
    Operation("note of what was cleaned", r"/cleaned\.json$", "archive", side="Python"),
    Operation(
        "removal of a read file", r"/landing/\d+\.json$", "delete", verb="remove", side="Python"
    ),
]
SAMPLE = {
    ("lease", "before"),
    ("manifest", "before"),
    ("target table commit", "disk full"),
    ("offsets", "I/O error"),
    ("commits", "partial write"),
    ("commits", "I/O error"),
    ("batch note", "disk full"),
    ("report", "I/O error"),
    ("manifest", "partial write"),
    ("first commit of a target table, with rows", "disk full"),
    ("first commit of a target table, with rows", "partial write"),
    ("note of a batch's try", "partial write"),
    ("note of how batches are cut", "partial write"),
}
"""The faults of a short test: each kind once on either side.

One more leaves a batch noted and not committed in a run that lives to report.
"""
BROKEN, REFUSED = "{broken", order(3, day=10, amount=-1.0)
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""For a dozen rows, planning twice and compiling cost more than the work."""
FIRST = [order(1, day=10), order(1, day=10), order(2, day=10), REFUSED, BROKEN]
BACKLOG = [
    [order(2, day=10), order(4, day=10), order(4, day=10), BROKEN, "{torn"],
    [order(5, day=10), REFUSED, order(6, day=10, amount=-2.0)],
    [order(4, day=10), order(7, day=10)],
]
CLEANED = {
    "archive": {"clean_source": "archive", "archive": "archive"},
    "delete": {"clean_source": "delete"},
}
LATE = [order(20, day=2), order(21, day=2)]
"""Behind the watermark that the first file sets."""


@dataclass
class Outcome:
    """How a run ended that was cut off or met a fault."""

    operation: str
    moment: str
    ended: str


class FaultyShop:
    """One shop of a kind: it lives through a row of faults, and once through the days without."""

    def __init__(self, folder: Path, kind: str, power: Power, spark: object) -> None:
        self.kind, self.power, self.spark, self.saved = kind, power, spark, folder / f"{kind}-saved"
        source = dict(CLEANED.get(kind, {}))
        if "archive" in source:
            source["archive"] = str(folder / kind / "archive")
        plain = dict.fromkeys(("running", "rows", "archive", "delete", "long"), {})
        dedup = {**plain, "state": {"memory": "state"}}.get(kind, {"late": "keep"})
        self.shop = Shop(folder / kind, dedup=dedup, source=source)
        self.shop.write(spark=QUICK)
        if kind not in ("new", "rows"):
            self.shop.land(*FIRST)
            self.shop.run("first")
        self.start = self.shop.landed
        shutil.copytree(self.shop.folder, self.saved)

    def _put_back(self) -> None:
        shutil.rmtree(self.shop.folder)
        shutil.copytree(self.saved, self.shop.folder)
        self.shop.landed = self.start
        for lines in BACKLOG:
            self.shop.land(*lines, *(LATE if self.kind == "late" else []))

    def _land(self, number: int) -> None:
        self.shop.land(
            order(4, day=10),
            order(100 + number, day=10),
            order(6, day=10, amount=-2.0),
            f"{{cut {number}",
            *([order(30, day=2)] if self.kind == "late" else []),
        )
        if self.kind in CLEANED:  # which no run unpacks, so it stays
            (self.shop.landing / f"{number}.json.snappy").write_text("packed")

    def _drain(self) -> list[str]:
        """Run until nothing is new; says what is not as it should be."""
        for _ in range(4):
            report = self.shop.run()
            if report.status not in ("done", "nothing new"):
                return [f"a run after the faults ended with: {report.error}"]
            if report.exit_code is ExitCode.NOTHING_NEW:
                return []
        return ["the runs after the faults never came to an end"]

    def _results(self) -> dict[str, object]:
        """Tables as multisets; what all reports together say."""
        reports = list_reports(self.shop.root / "reports" / "orders")
        steps = [step for report in reports for step in report.steps]
        rules = Counter()
        for rule in (rule for step in steps for rule in step.rules):
            rules.update(
                {
                    (rule.name, "evaluated"): rule.evaluated,
                    (rule.name, "unexpected"): rule.unexpected,
                }
            )
        return {
            "target": self.shop.rows(self.spark),
            "quarantine": self.shop.rows(self.spark, "paid__quarantine", ("row", "reasons")),
            "late": self.shop.rows(self.spark, "paid__late"),
            "counts": sum((report.counts for report in reports), Counts()),
            "rules": +rules,
            "files": sum(step.files_read for step in steps),
            **{name: sorted(os.listdir(self.shop.folder / name)) for name in self._folders},
        }

    @property
    def _folders(self) -> tuple[str, ...]:
        """Where files lie that were landed."""
        return ("landing", "archive") if self.kind == "archive" else ("landing",)

    def _calm(self, files: int) -> dict[str, object]:
        """What the shop holds after a run without a fault."""
        self._put_back()
        for number in range(files):
            self._land(number)
        assert self._drain() == []
        return self._results()

    def play(self, chain: list[tuple[Operation, str]]) -> tuple[list[Outcome], list[str]]:
        """Run into one fault after the other, each time with one more file, then to the end.

        Returns how the runs ended, and what is wrong.
        """
        wanted, outcomes, wrong = self._calm(len(chain)), [], []
        self._put_back()
        for number, (operation, moment) in enumerate(chain):
            self._land(number)
            outcome, error = self._fail(operation, moment)
            print(f"{outcome.moment}, {outcome.operation}: {outcome.ended} {error}", flush=True)
            outcomes.append(outcome)
            wrong += [f"{moment}, {operation.name}: {error}"] if error else []
        wrong += self._drain()
        found = self._results()
        return outcomes, wrong + [
            f"{name}: {found[name]} instead of {wanted[name]}"
            for name in found
            if found[name] != wanted[name]
        ]

    def _fail(self, operation: Operation, moment: str) -> tuple[Outcome, str]:
        """One run with one fault; the machine is well again afterwards."""
        verb = "put" if operation.verb == "move" else operation.verb
        self.power.arm(self.shop.folder, verb, operation.path, moment)
        try:
            code, error = self._run_once()
            fired = self.power.fired
        finally:
            self.power.restore()
        for lease in [
            *self.shop.root.rglob("lease"),
            *self.shop.root.rglob("_leases"),
        ]:  # this process lives on, but the run's is dead
            shutil.rmtree(lease)
        cut = moment in CUTS or moment == "partial write"
        ended = "cut off" if cut else "went on" if code == 0 else f"exit code {code}"
        if not fired:
            never = f"the operation was never reached, exit code {code}: {error}"
            return Outcome(operation.name, moment, "never reached"), never
        return Outcome(operation.name, moment, ended), "" if cut else _judge(code, error)

    def _run_once(self) -> tuple[int | None, str]:
        try:
            report = self.shop.run()
        except SluiceError as error:
            return int(error.exit_code), str(error)
        except Exception as error:
            return None, f"{type(error).__name__}: {error}"
        return int(report.exit_code), report.error or ""


def _judge(code: int | None, error: str) -> str:
    """What is wrong with the end of a run that met a fault; nothing where the text is empty.

    Such a run goes on, or says what happened and that trying again is worth it.
    """
    if code == 0:
        return ""
    if code != 5:
        return f"the run ended with exit code {code}: {error}"
    if not re.search(r"No space left on device|Input/output error", error):
        return f"the error does not say what went wrong: {error}"
    return (
        "" if re.search(r"[Rr]un again", error) else f"the error does not say what to do: {error}"
    )


def make_chain(kind: str, long: bool) -> list[tuple[Operation, str]]:
    """Every moment of every operation of a kind of shop, in a row.

    In short: the cut after each, where the next one has not begun, and a few faults.
    """
    return [
        (o, m)
        for o in OPERATIONS
        if o.shop == kind
        for m in o.moments
        if long or m == "after" or (o.name, m) in SAMPLE
    ]
