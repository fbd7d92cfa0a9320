"""An operator who does as he likes with a pipeline, and what he finds after each act."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sluice.errors import ExitCode
from sluice.report import RunReport
from sluice.spec import Refill

from tests.crash.ends import (
    TableSink,
    TableUpstream,
    TopicSink,
    TopicUpstream,
    Upstream,
)
from tests.crash.fault_points import QUICK, Operation
from tests.crash.power import Power
from tests.crash.tuesday import Oracle, Seen
from tests.crash.view import View
from tests.kafka_broker import KafkaBroker
from tests.postgres_server import PostgresServer
from tests.spark.shop import Shop, order

WHOLE = {"start": "2026-01-01", "end": "2026-02-01"}
ENDED = ("done", "nothing new", "undelivered")


class Servers(NamedTuple):
    """Which run for all histories."""

    postgres: PostgresServer
    broker: KafkaBroker


class Operator:
    """One pipeline in a folder of its own, with a sink, and the oracle beside it.

    Each act that ends a run compares the tables, the sink and the sum of all reports.
    """

    def __init__(self, spark: object, power: Power, servers: Servers, folder: Path) -> None:
        self.spark, self.power, self.servers = spark, power, servers
        self.oracle, self.folder = Oracle(), folder
        self.name = folder.name.replace("-", "_")
        self.records, self.runs, self.untold = 0, 0, set()
        self.good: list[str] = []
        self.bad: list[str] = []
        self.more = False
        self.sink: TableSink | TopicSink = TableSink(servers.postgres, self.name)
        self.upstream: Upstream | None = None
        self.shop = Shop(folder, sink=[{"kind": "delta"}, self.sink.spec])
        self.view = View(spark, self.shop)
        self.others: list[Shop] = []
        self._write()

    def choose(self, kind: str) -> None:
        """The kind of pipeline of this history: `files`, `large` ones, `ranked` (of the rows of a
        key one stays, and the sink follows), `table` (a Delta table is the source), or `topic`
        (one is the source, another one the sink)."""
        if kind == "ranked":
            self.sink.spec |= {"mode": "upsert", "keys": ["order_id"]}
            self.edit(order=1)
        if kind == "table":
            self._read(TableUpstream(self.spark, str(self.folder / "upstream")))
        if kind == "topic":
            self._read(TopicUpstream(self.servers.broker, f"{self.name}_in"))
            self.sink = TopicSink(self.servers.broker, f"{self.name}_out")
            self.shop.step["sink"] = [{"kind": "delta"}, self.sink.spec]
        self._write()

    def _read(self, upstream: Upstream) -> None:
        self.upstream = upstream
        kept = set() if upstream.typed else {"format", "schema"}
        source = self.shop.step["source"]
        self.shop.step["source"] = {key: source[key] for key in kept} | upstream.source

    @property
    def checkpoint(self) -> Path:
        return self.shop.root / "checkpoints" / "orders" / "paid"

    # What the operator does to the pipeline.

    def land(self, kinds: list[str]) -> None:
        """Land a file with a record of each kind."""
        lines = [self._make_line(kind) for kind in kinds]
        if self.upstream is None:
            self.shop.land(*lines)
        else:
            self.upstream.add(lines)
        self.oracle.land(lines)

    def _make_line(self, kind: str) -> str:
        if kind == "copy" and self.good:
            return self.good[self.records % len(self.good)]
        if kind == "bad copy" and self.bad:
            return self.bad[self.records % len(self.bad)]
        self.records += 1
        amount = {"large": 50.0, "negative": -1.0, "better": 2.0, "worse": 0.5}.get(kind, 1.0)
        made = order(self.records, day=10, amount=amount + self.records / 1000)
        if kind in ("better", "worse") and self.oracle.definition.order and self.good:
            made["order_id"] = json.loads(self.good[self.records % len(self.good)])["order_id"]
        if kind == "broken" and not self._is_typed():
            line = f"{{broken {self.records}"
        elif kind in ("renamed", "broken"):
            line = json.dumps({"orderId": made.pop("order_id"), **made})
        else:
            line = json.dumps({**made, **({"more": 1} if kind == "extra" else {})})
        refused = kind in ("broken", "renamed", "negative")
        (self.bad if refused else self.good).append(line)
        return line

    def edit(self, **definition: float) -> None:
        """Let other amounts pass (`limit`), let the transform make others (`factor`), or let
        another row of a key stay (`order`)."""
        self.oracle.definition = replace(self.oracle.definition, **definition)
        self._write()

    def edit_schema(self) -> None:
        """Declare a field that some records have, or take it out again. The sink's table is given
        the column, as an error would advise."""
        if self._is_typed():
            return
        self.more = not self.more
        fields = {"order_id": "string", "amount": "double", "at": "timestamp"}
        self.shop.step["source"]["schema"] = fields | ({"more": "bigint"} if self.more else {})
        self._write()
        self.sink.widen()

    def _is_typed(self) -> bool:
        return self.upstream is not None and self.upstream.typed

    def edit_pace(self, files: int | None) -> None:
        """Read the backlog in smaller or larger batches; a topic's has no files."""
        if isinstance(self.upstream, TopicUpstream):
            return
        self.shop.step["source"]["max_files_per_batch"] = files
        self._write()

    def set_sink(self, state: str) -> None:
        """The sink is `well`, `away`, `refusing`, or `out` of the pipeline."""
        self.sink.refuse(state == "refusing")
        self.sink.leave(away=state == "away")
        sinks = [] if state == "out" else [self.sink.spec]
        self.shop.step["sink"] = [{"kind": "delta"}, *sinks]
        self.oracle.reached = state == "well" or (state == "refusing" and not self.sink.exists())
        self._write()

    def _write(self) -> None:
        factor, limit = self.oracle.definition.factor, self.oracle.definition.limit
        between = {"column": "amount", "min_value": 0, "max_value": limit}
        self.shop.step["rules"] = [
            {
                "type": "expect_column_values_to_be_between",
                "kwargs": between,
                "on_fail": "quarantine",
                "name": "amount_in_range",
            }
        ]
        sql = self.folder / "t.sql"
        more = ", more" if self.more else ""
        sql.write_text(f"SELECT order_id, amount * {factor} AS amount, at{more} FROM source")
        self.shop.step["transform"] = sql.name if factor != 1 else None
        if ranked := self.oracle.definition.order:
            self.shop.step["dedup"]["order_by"] = ["amount desc" if ranked > 0 else "amount"]
        self.shop.write(spark=QUICK)

    # What the operator runs.

    def run(self, again: int = 0) -> None:
        """A scheduled run; `again`: under the id of one that was so many before."""
        report = self.shop.run(self._name_run(again))
        assert report.status in ENDED, report.error
        self.oracle.run(self._look())

    def _is_followed(self) -> bool:
        return any((self.shop.root / "positions").rglob("*.json"))

    def _see(self) -> Seen:
        return self.view.look(self.sink, self.upstream)

    def _look(self) -> Seen:
        """What a run has left. Whether the sink follows is noted before the first batch."""
        self.oracle.follows = self._is_followed()
        return self._see()

    def fail(self, operation: Operation, moment: str) -> None:
        """A scheduled run that is cut off at a durable operation, or fails there; it may end well
        where it does not come to it."""
        report = self._run_into(operation, moment, self._name_run(), {})
        if report is not None and report.status in ENDED:
            self.oracle.run(self._look())
        else:
            self.oracle.stop(self._look())

    def backfill(self, operation: Operation | None = None, moment: str = "") -> None:
        """A backfill of everything, once more under its id where it was cut off."""
        if not self.oracle.files:
            return
        request, run_id = {"window": WHOLE}, self._name_run()
        report = None
        if operation is not None:
            report = self._run_into(operation, moment, run_id, request)
        if report is None or report.status not in ENDED:
            report = self.shop.run(run_id, **request)
        assert report.status in ENDED, report.error
        self.oracle.backfill(self._look())

    def replace_range(self) -> None:
        """A backfill that replaces everything, which no sink that adds rows can follow."""
        if not self._is_followed() or not self.oracle.files:
            return
        report = self.shop.run(self._name_run(), window=WHOLE, write="replace")
        # Rows of the other pipeline refuse it as well: their files are not this one's to read.
        assert report.exit_code is ExitCode.TERMINAL and "replac" in report.error, report.error
        self.oracle.refuse(self._see())

    def refill(self) -> None:
        """Empty the sink's table, and have all sent again that the target holds."""
        ready = self.oracle.reached and self._is_followed()
        if not ready or not self.sink.exists() or not self.view.has("paid"):
            return
        self.sink.empty()
        self.oracle.worlds = {w.without_sink() for w in self.oracle.worlds}
        report = self.shop.run(self._name_run(), refill=Refill(everything=True))
        assert report.status in ENDED, report.error
        self.oracle.deliver(self._see())

    def _name_run(self, again: int = 0) -> str:
        self.runs += not again
        return f"run-{max(1, self.runs - again + 1) if again else self.runs}"

    def _run_into(
        self, operation: Operation, moment: str, run_id: str, request: dict
    ) -> RunReport | None:
        self.power.arm(self.shop.root, operation.verb, operation.path, moment)
        report = None
        try:
            report = self.shop.run(run_id, **request)
        except Exception as error:
            print(f"cut off: {error}")  # a dead process would not say it
        finally:
            self.power.restore()
        for lease in [*self.shop.root.rglob("lease"), *self.shop.root.rglob("_leases")]:
            shutil.rmtree(lease, ignore_errors=True)  # this process lives on, but the run's is dead
        return report

    # What the operator does to tables and checkpoints.

    def optimize(self) -> None:
        """Rewrite the target's files."""
        if self.view.has("paid"):
            self.view.table("paid").optimize().executeCompaction()

    def delete(self, number: int) -> None:
        """Delete one order from the target, as a law may demand."""
        held = sorted({name for world in self.oracle.worlds for name, *_ in world.target})
        if not held:
            return
        name = held[number % len(held)]
        self.view.table("paid").delete(f"order_id = '{name}'")
        self._note_act()
        self.oracle.worlds = {w.without(name) for w in self.oracle.worlds}

    def purge(self) -> None:
        """Delete what was quarantined."""
        if self.view.has("paid__quarantine"):
            self.view.table("paid__quarantine").delete()
        self.oracle.change(quarantine=frozenset(), half=frozenset(), left=frozenset())

    def save(self) -> None:
        """Remember a version of target and quarantine, where it is known what they hold."""
        (world, *others) = self.oracle.worlds
        if self.view.has("paid") and not any(w.target != world.target for w in others):
            self.oracle.saved.append((self.view.version(), world.target))
        final = not any(
            w.half or w.left or w.quarantine != world.quarantine for w in (world, *others)
        )
        if self.view.has("paid__quarantine") and final:
            self.oracle.kept.append((self.view.version("paid__quarantine"), world.quarantine))

    def restore_quarantine(self, number: int) -> None:
        """Put the quarantine table back to a version that was remembered."""
        if self.oracle.kept:
            version, quarantine = self.oracle.kept[number % len(self.oracle.kept)]
            if self.view.restore("paid__quarantine", version):
                self.oracle.change(quarantine=quarantine, half=frozenset(), left=frozenset())

    def restore(self, number: int) -> None:
        """Put the target back to a version that was remembered."""
        if not self.oracle.saved or not self.view.has("paid"):
            return
        version, target = self.oracle.saved[number % len(self.oracle.saved)]
        if self.view.restore("paid", version):
            self._note_act()
            self.oracle.change(target=target)

    def lose(self, what: str) -> None:
        """Remove the target, the manifest or the checkpoint; follow what the next run advises."""
        checkpoint = self.checkpoint
        had_batches = any((checkpoint / "spark" / "commits").glob("[0-9]*"))
        if what == "target" and self.view.has("paid"):
            shutil.rmtree(self.view.path)
            self.oracle.saved, self.oracle.kept, self.others = [], [], []
            self.oracle.change(target=frozenset())
            said = "remove the checkpoint as well"
        elif what == "manifest" and (checkpoint / "manifest.json").exists():
            (checkpoint / "manifest.json").unlink()
            said = "remove the whole checkpoint folder"
        elif what == "checkpoint":
            said = ""
        else:
            return
        if said and had_batches:
            if what == "target":  # a file is waiting, so that the run has to look
                self.land(["new"])
            self._be_refused(said)
        self._begin_anew(everything=what == "target")

    def renew_source(self) -> None:
        """Make the source table or topic anew; follow what the next run advises."""
        if self.upstream is None:
            return
        had_batches = any((self.checkpoint / "spark" / "offsets").glob("[0-9]*"))
        self.upstream.renew()
        self.oracle.lose_source()
        self.land(["new"])
        if had_batches:
            self._be_refused(self.upstream.renewed)
        self._begin_anew(everything=False)

    def _be_refused(self, said: str) -> None:
        report = self.shop.run(self._name_run())
        assert report.exit_code is ExitCode.TERMINAL and said in report.error, report.error
        self.oracle.refuse(self._see())

    def _begin_anew(self, everything: bool) -> None:
        """Remove the checkpoint. Args: everything: the target is gone as well."""
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        self.untold.clear()  # what accounts for the target's log lay there
        every = tuple(range(self.oracle.first, len(self.oracle.files)))
        self.oracle.worlds = {
            # of a batch that was half done, and of all where the target went that makes them final
            replace(w, pending=every, untold=()).abandon(everything)
            for w in self.oracle.worlds
        }

    def step_clock(self, days: int) -> None:
        """Set the machine's clock: all that was written so far is older by so many days."""
        for path in self.shop.root.rglob("*"):
            if path.is_file():
                written = path.stat().st_mtime - days * 86_400
                os.utime(path, (written, written))
        self.view.forget()

    def write_other(self) -> None:
        """Another pipeline writes two rows into the same table; one that reads files, whose
        `_source` is no topic's."""
        if not self.view.has("paid") or isinstance(self.upstream, TopicUpstream):
            return
        if not self.others:
            sink = {"kind": "delta", "table": str(self.view.path)}
            folder = self.folder / f"other-{self.oracle.acts}-{self.runs}"
            self.others = [Shop(folder, sink=sink, rules=[])]
        (other,) = self.others
        other.write(name="refunds", spark=QUICK)
        self.oracle.acts += 1
        rows = []
        for _ in range(2):
            self.records += 1
            rows.append(order(self.records, day=10) | {"order_id": f"x{self.records}"})
        other.land(*rows)
        report = other.run()
        assert report.status == "done", report.error
        added = {(row["order_id"], row["amount"], self.oracle.acts) for row in rows}
        self.oracle.worlds = {w.with_rows(added) for w in self.oracle.worlds}

    def settle(self) -> None:
        """The end of the day: all is well, and one run makes all exact; then nothing is new. A file
        lands for it: what people did to a table alone starts no Spark."""
        self.set_sink("well")
        self.land(["new"])
        self.run()
        self.run()
        told = " ".join(
            w for report in self.view.reports() for s in report.steps for w in s.warnings
        )
        for version in self.untold:
            assert f"(version {version} of the target)" in told

    def _note_act(self) -> None:
        """The next report has to tell of the newest version, where it took rows away; before the
        first one the table's past is nobody's to tell."""
        text = (self.view.path / "_delta_log" / f"{self.view.version():020}.json").read_text()
        marked = (self.checkpoint / "target.json").exists()
        if marked and '"remove":' in text and '"dataChange":true' in text:
            self.untold.add(self.view.version())
