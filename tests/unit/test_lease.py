"""One holder at a time, in a folder and in a bucket: the same promises for both."""

import json
import os
import subprocess
import sys
import threading
import time

import boto3
import psutil
import pytest
from moto.server import ThreadedMotoServer
from sluice.checkpoint import hold_lease, holder, lease, take_turn
from sluice.checkpoint.holder import Holder, check_parents, start_of
from sluice.checkpoint.lease_store import open_leases
from sluice.errors import CheckpointBusy, LeaseLost, ParentLost, TerminalError


@pytest.fixture(scope="module")
def bucket():
    """A bucket on moto's server; its address and keys by environment, as a user has them."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    boto3.client("s3").create_bucket(Bucket="leases")
    yield "s3a://leases"
    server.stop()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(params=["folder", "bucket"])
def place(request, tmp_path):
    return (
        str(tmp_path / "lease")
        if request.param == "folder"
        else f"{request.getfixturevalue('bucket')}/{tmp_path.name}/{time.monotonic_ns()}"
    )


@pytest.fixture
def short_lease(monkeypatch):
    monkeypatch.setattr(lease, "LEASE_SECONDS", 1.2)


def silence(held: lease.Lease) -> None:
    """End a holder's heartbeat, as a frozen process does."""
    held._ended.set()
    held._thread.join()


def elsewhere(monkeypatch) -> None:
    """Make every holder look like one of another machine, whose processes cannot be seen."""
    monkeypatch.setattr(Holder, "is_gone", lambda self: False)


def test_a_second_run_is_told_who_holds_it_and_since_when(place):
    with (
        hold_lease(place, "first") as held,
        pytest.raises(
            CheckpointBusy,
            match=rf"run first \(process {os.getpid()} on .*since {held.me.since[:10]}.*number 1",
        ),
        hold_lease(place, "second"),
    ):
        pass


def test_the_next_run_takes_over_at_once_with_a_higher_number(place):
    numbers = []
    for name in ("first", "second", "third"):
        with hold_lease(place, name) as held:
            numbers.append(held.number)
            held.check()
    assert numbers == [1, 2, 3]


def test_a_silent_holder_is_outranked_only_after_its_lease_expired_and_then_may_not_write(
    place, short_lease, monkeypatch
):
    elsewhere(monkeypatch)
    with hold_lease(place, "silent") as old:
        silence(old)
        with pytest.raises(CheckpointBusy), hold_lease(place, "early"):
            pass
        old.check()
        with hold_lease(place, "next", wait=10) as new:
            assert new.number == old.number + 1
            with pytest.raises(LeaseLost, match="number 1"):
                old.check()
            new.check()
        new_after = open_leases(place).newest()
        assert (
            new_after.number == 2 and new_after.holder.released
        )  # what the old one let go of was not this


def test_a_holder_that_beats_is_never_outranked(place, short_lease, monkeypatch):
    elsewhere(monkeypatch)
    with hold_lease(place, "alive") as held:
        with pytest.raises(CheckpointBusy), hold_lease(place, "second", wait=3):
            pass
        held.check()


def test_a_clock_that_jumped_makes_no_holder_dead(place, monkeypatch):
    monkeypatch.setattr(lease, "LEASE_SECONDS", 6)  # it is watched for a sixth of them
    elsewhere(monkeypatch)
    with hold_lease(place, "alive") as held:
        monkeypatch.setattr(
            lease,
            "_is_free",
            lambda store, claim, real=lease._is_free: real(store, claim and _aged(claim)),
        )
        with pytest.raises(CheckpointBusy), hold_lease(place, "second"):
            pass
        held.check()


def test_a_dead_holder_of_another_machine_is_outranked_though_the_clock_was_set_back_since(
    tmp_path, short_lease, monkeypatch
):
    elsewhere(monkeypatch)
    tomorrow = time.time() + 86_400
    with hold_lease(str(tmp_path), "dead") as old:
        silence(old)
        os.utime(tmp_path / "0000000001.json", (tomorrow, tomorrow))
        with hold_lease(str(tmp_path), "next") as new:
            assert new.number == 2


def test_a_holder_that_beats_keeps_its_right_though_the_clock_was_set_back(
    tmp_path, short_lease, monkeypatch
):
    elsewhere(monkeypatch)
    tomorrow = time.time() + 86_400
    with hold_lease(str(tmp_path), "alive") as held:
        os.utime(tmp_path / "0000000001.json", (tomorrow, tomorrow))
        with pytest.raises(CheckpointBusy), hold_lease(str(tmp_path), "next"):
            pass
        held.check()


def _aged(claim):
    from dataclasses import replace

    return replace(claim, silent=1e6)


def test_a_holder_whose_process_ended_is_outranked_at_once(tmp_path):
    place = str(tmp_path / "lease")
    code = (
        f"from sluice.checkpoint import hold_lease; import os, signal\nwith hold_lease({place!r}, "
        "'killed'): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert json.loads((tmp_path / "lease" / "0000000001.json").read_text())["released"] is False
    with hold_lease(place, "next") as held:
        assert held.number == 2


def test_the_heartbeat_notices_a_lost_lease_by_itself(place, short_lease, monkeypatch):
    elsewhere(monkeypatch)
    with hold_lease(place, "old") as old:
        old.store.create(7, Holder.me("usurper").model_dump_json())
        deadline = time.monotonic() + 10
        while not old.lost and time.monotonic() < deadline:
            threading.Event().wait(0.02)
        with pytest.raises(LeaseLost):
            old.raise_if_lost()
    assert open_leases(place).newest().holder.run_id == "usurper"


def test_of_many_runs_that_want_it_at_once_one_holds_it_at_a_time(place):
    inside, most, done = [], [], []

    def work(name: str) -> None:
        with hold_lease(place, name, wait=300) as held:  # a busy machine is slow to hand on
            inside.append(name)
            most.append(len(inside))
            held.check()
            inside.remove(name)
            done.append(held.number)

    threads = [threading.Thread(target=work, args=(f"run{n}",)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    assert sorted(done) == list(range(1, 13))


def test_a_torn_claim_is_respected_until_it_expires(tmp_path, short_lease):
    folder = tmp_path / "lease"
    folder.mkdir()
    (folder / "0000000004.json").write_text('{"run_id": "to')
    with pytest.raises(CheckpointBusy, match="an unknown run"), hold_lease(str(folder), "early"):
        pass
    with hold_lease(str(folder), "next", wait=10) as held:
        assert held.number == 5


def test_a_store_that_cannot_arbitrate_is_refused_by_name_and_its_tables_need_no_turn():
    with (
        pytest.raises(TerminalError, match="abfss"),
        hold_lease("abfss://c@a.dfs.core.windows.net/checkpoint/lease", "run"),
    ):
        pass
    with take_turn("abfss://c@a.dfs.core.windows.net/tables/t", "run", 0) as turn:
        assert turn is None


def test_a_run_whose_parent_is_gone_is_told_so():
    parent = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    who = [(parent.pid, start_of(parent.pid))]
    check_parents(who)
    check_parents([])
    parent.kill()
    parent.wait()
    with pytest.raises(ParentLost, match=f"process {parent.pid}"):
        check_parents(who)
    with pytest.raises(ParentLost):
        check_parents([(os.getpid(), 1.0)])  # the number was given to another process


def test_a_holder_is_there_after_the_clock_was_set(monkeypatch):
    me = Holder.me("run")
    told = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: told(process) + 3600)
    assert not me.is_gone()
    assert me.model_copy(update={"start": me.start + 1}).is_gone()  # another had the number before


def test_a_holder_is_known_where_the_system_has_no_proc(monkeypatch, tmp_path):
    monkeypatch.setattr(holder, "_PROC", tmp_path)
    me = Holder.me("run")
    assert me.start == psutil.Process().create_time()
    assert not me.is_gone()
    assert me.model_copy(update={"start": me.start - 5}).is_gone()
