"""Runs the steps of a pipeline in their order; steps that do not wait for each other at once."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from graphlib import TopologicalSorter

from pyspark import inheritable_thread_target

from ..errors import LeaseLost, ParentLost, SluiceError
from ..spark.executors import fit_to_executors
from ..spark.jvm import JVM_GONE
from ..spark.pools import own_session
from ..spec import Step
from ..spec.order import Before
from .run import Run

_log = logging.getLogger(__name__)
_ENDS_RUN = (LeaseLost, ParentLost, *JVM_GONE)
"""After one of these no step is worth a start."""

Work = Callable[[Run, Step], bool]
"""Drains a step; false where the time budget ended it before its backlog."""


@dataclass
class Ended:
    """How the steps of a run ended. `failures`: by step. `unfinished`: the time was over before the
    backlog was."""

    failures: dict[str, Exception] = field(default_factory=dict)
    unfinished: bool = False

    @property
    def lost(self) -> Exception | None:
        """What leaves nothing to go on with."""
        return next((e for e in self.failures.values() if isinstance(e, _ENDS_RUN)), None)

    @property
    def is_over(self) -> bool:
        """True where no step is worth a start any more."""
        return self.unfinished or self.lost is not None

    def take(self, step: str, future: Future) -> bool:
        """Keep how a step ended; true where those may start that wait for it."""
        error = future.exception()
        if error is None:
            self.unfinished = self.unfinished or not future.result()
            return bool(future.result())
        if not isinstance(error, Exception):
            raise error
        if not isinstance(error, SluiceError):
            _log.error("step %s failed", step, exc_info=error)
        self.failures[step] = error
        return False


def run_steps(run: Run, before: Before, work: Work) -> Ended:
    """Run every step once those are done that it waits for. One that fails keeps those from
    starting which wait for it; the others go on.

    Raises what leaves nothing to go on with: LeaseLost, ParentLost, a JVM that is gone.
    """
    ended = _run_here(run, before, work) if run.at_once == 1 else _run_apart(run, before, work)
    if ended.lost is not None:
        raise ended.lost
    return ended


def _run_here(run: Run, before: Before, work: Work) -> Ended:
    return _run_all(run, before, partial(work, run), _Here())


def _run_apart(run: Run, before: Before, work: Work) -> Ended:
    """Run each step in a thread, a session and a pool of the scheduler of its own."""
    fit_to_executors(run.spark, run.pipeline.spark)  # once, for what the sessions begin with

    def start(step: Step) -> bool:
        with own_session(run.spark, step.name) as spark:
            return work(replace(run, spark=spark, pool=step.name), step)

    with _Threads(run) as threads, _giving_up(run):
        return _run_all(run, before, start, threads)


class _Here(Executor):
    """Does what it is given in the thread that asks."""

    def submit(self, fn: Callable, /, *args: object, **kwargs: object) -> Future:
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 (as every executor does)
            future.set_exception(error)
        return future


class _Threads(ThreadPoolExecutor):
    """Threads whose jobs have the properties of the one that asks, each a copy of its own: what
    is wrapped once shares one object, and the pool that one thread sets would be every one's."""

    def __init__(self, run: Run) -> None:
        super().__init__(run.at_once, "step")
        self._spark = run.spark

    def submit(self, fn: Callable, /, *args: object, **kwargs: object) -> Future:
        return super().submit(inheritable_thread_target(self._spark)(fn), *args, **kwargs)


@contextmanager
def _giving_up(run: Run) -> Iterator[None]:
    """Where the thread that waits for the steps is interrupted, end them: nobody else would."""
    try:
        yield
    except BaseException:
        run.rights.give_up()
        raise


def _run_all(run: Run, before: Before, start: Callable[[Step], bool], executor: Executor) -> Ended:
    """Start what is ready, at most so many at once, until nothing is ready any more."""
    steps = {step.name: step for step in run.pipeline.steps}
    order, ended = TopologicalSorter(before), Ended()
    order.prepare()
    ready: list[str] = []
    running: dict[Future, str] = {}
    while True:
        ready = sorted([*ready, *order.get_ready()], key=list(steps).index)
        while ready and not ended.is_over and len(running) < run.at_once:
            name = ready.pop(0)
            running[executor.submit(start, steps[name])] = name
        if not running:
            return ended
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            name = running.pop(future)
            if ended.take(name, future):
                order.done(name)
