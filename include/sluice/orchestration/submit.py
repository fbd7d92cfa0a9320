"""The task that runs Spark: RunRequest in, exit code out, and only what may pass is tried again."""

import sys
from datetime import UTC, datetime

import psutil
from airflow.exceptions import AirflowNotFoundException
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from ..backlog.ranges import select_range
from ..checkpoint import start_of
from ..errors import ExitCode, SluiceError
from ..launch import spark_settings, write_properties
from ..report import RunReport
from ..report.store import read_report
from ..spec import Mode, Pipeline, RunRequest, Window, load_pipeline
from ..storage import PROJECT
from .connections import export_connections
from .named import pipelines_folder
from .submit_hook import PrivateSubmitHook
from .tasks import BACKLOG_KEY

JUDGED_BY_GATE = frozenset({ExitCode.DONE, ExitCode.STOPPED_BY_RULE})
"""Exit codes that leave a report, which decides in the task `gate`."""


def conclude(exit_code: int, error: str) -> None:
    """Turn an exit code into a task's fate.

    Returns where the report decides; raises AirflowSkipException when nothing was new,
    AirflowException for what is tried again and AirflowFailException for what is not.
    """
    if exit_code in JUDGED_BY_GATE:
        return
    if exit_code == ExitCode.NOTHING_NEW:
        raise AirflowSkipException("Spark found nothing new, so nothing downstream is woken.")
    if exit_code < 0 or exit_code > 128:
        signal = -exit_code if exit_code < 0 else exit_code - 128
        raise AirflowException(
            f"The driver was killed by signal {signal} "
            f"(out of memory, or its machine went away): {error}"
        )
    if exit_code == ExitCode.TRANSIENT:
        raise AirflowException(f"The run ended for a reason that may pass: {error}")
    raise AirflowFailException(
        f"The run failed (exit code {exit_code}), and trying again would not help: {error}"
    )


def choose_window(
    run_type: str, interval: tuple[datetime | None, datetime | None], params: dict
) -> Window:
    """The range of a backfill: the data interval, or its `from` and `to` when started by hand.

    Raises ValueError saying what to write.
    """
    start, end = params.get("from"), params.get("to")
    if run_type == "backfill":
        if start or end:
            raise ValueError(
                "`from` and `to` belong to runs started by hand; "
                "`airflow backfill create` takes --from-date and --to-date"
            )
        start, end = interval
    if not (start and end):
        raise ValueError(
            "a backfill needs both ends of its range: write `from` and `to`, "
            "for instance 2026-01-01T00:00:00Z and 2026-01-03T00:00:00Z"
        )
    return Window(start=start, end=end)


class RunPipelineOperator(SparkSubmitOperator):
    """Submits `jobs/run_pipeline.py` for one pipeline file, under Airflow's own run id.

    The request and Spark's settings are made as the task runs, by the worker that submits: only it
    knows its Python, its jars and the backlog.
    """

    template_fields = ()

    def __init__(self, *, pipeline_file: str, backfill: bool = False, **kwargs) -> None:
        super().__init__(application=str(PROJECT / "jobs" / "run_pipeline.py"), **kwargs)
        self.pipeline_file, self.backfill = pipeline_file, backfill

    def execute(self, context) -> None:
        """Submit, wait, and judge by exit code.

        Raises AirflowFailException, also where the connection or a jar is missing.
        """
        started = datetime.now(UTC)
        try:
            pipeline = load_pipeline(pipelines_folder() / self.pipeline_file)
            hook = self._check_connection(pipeline)
            request = self._make_request(pipeline, hook, context)
            settings = self._make_settings(pipeline, hook, request)
        except (SluiceError, ValueError) as error:
            raise AirflowFailException(str(error)) from error
        try:
            with write_properties(settings) as file:
                self._hook = hook
                hook.prepare(
                    f"sluice-{pipeline.name}",
                    str(file),
                    ["--request", request.model_dump_json(exclude_none=True)],
                )
                super().execute(context)
        except AirflowFailException:
            raise
        except (AirflowException, RuntimeError) as failure:
            self._conclude_failed(hook, request, started, failure)

    def _check_connection(self, pipeline: Pipeline) -> PrivateSubmitHook:
        """The hook of the connection.

        Raises SluiceError: the hook would submit to YARN when the connection does not exist.
        """
        try:
            BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException:
            raise SluiceError(
                "no such Airflow connection",
                where=f"pipeline {pipeline.name}: spark_conn_id",
                value=self._conn_id,
                do=f"Create it: airflow connections add {self._conn_id} "
                "--conn-type spark --conn-host 'local[*]'",
            ) from None
        hook = PrivateSubmitHook.of(self._get_hook())
        if "master" in pipeline.model_fields_set and pipeline.master != hook.master:
            self.log.warning(
                "The pipeline names master %s, connection %s names %s: the connection wins.",
                pipeline.master,
                self._conn_id,
                hook.master,
            )
        return hook

    def _make_request(self, pipeline: Pipeline, hook: PrivateSubmitHook, context) -> RunRequest:
        request = self._begin_request(hook, context["run_id"])
        if not self.backfill:
            backlog = context["ti"].xcom_pull(task_ids="probe", key=BACKLOG_KEY) or {}
            return request.model_copy(update={"backlog_bytes": backlog.get("bytes")})
        interval = context.get("data_interval_start"), context.get("data_interval_end")
        window = choose_window(context["dag_run"].run_type, interval, context["params"])
        sizes = [select_range(step, window).bytes for step in pipeline.steps]
        return request.model_copy(
            update={
                "backlog_bytes": None if None in sizes else sum(filter(None, sizes)),
                "window": window,
                "write": context["params"]["write"],
            }
        )

    def _begin_request(self, hook: PrivateSubmitHook, run_id: str) -> RunRequest:
        return RunRequest(
            pipeline=str(pipelines_folder() / self.pipeline_file),
            run_id=run_id,
            master=hook.master,
            parents=[] if hook.runs_elsewhere else _find_parents(),
        )

    def _make_settings(
        self, pipeline: Pipeline, hook: PrivateSubmitHook, request: RunRequest
    ) -> dict[str, str]:
        """What spark-submit reads from its file. Raises PreflightError when a jar is missing."""
        settings = spark_settings(pipeline, request.backlog_bytes, master=request.master)
        env = export_connections(pipeline)
        if "spark.pyspark.python" not in settings and not hook.runs_elsewhere:
            # Another Python than ours has other packages: rules would then fail on every row
            # instead of raising.
            env |= {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
        return settings | hook.hand_environment(env)

    def _conclude_failed(
        self,
        hook: PrivateSubmitHook,
        request: RunRequest,
        started: datetime,
        failure: Exception,
    ) -> None:
        """Judge a submission that did not exit with 0.

        By the driver's exit code, or by the report where the driver runs elsewhere.
        """
        report = self._find_report(request, started)
        if report is not None and report.status == "undelivered" and self._leaves_sinks(report):
            return None
        # Without a report the end of the driver's output is the best there is; the hook puts the
        # whole command line before it.
        _, _, output = str(failure).rpartition("Last spark-submit output:")
        error = (report and report.error) or output.strip()
        code = hook.exit_code
        if hook.runs_elsewhere or code is None:
            if report is None:
                raise failure
            return conclude(report.exit_code, error)
        return conclude(code, error)

    def _leaves_sinks(self, report: RunReport) -> bool:
        """Whether this task is over although a further sink lacks rows: the table has them, so that
        what waits for it may go on, and the task `deliver` sees to the sink."""
        self.log.warning("The task `deliver` goes on with it: %s", report.error)
        return True

    def _find_report(self, request: RunRequest, started: datetime) -> RunReport | None:
        """The report of this try; one that an earlier try wrote is none."""
        reports = Mode.of(request).reports(load_pipeline(request.pipeline).paths())
        try:
            report = read_report(reports, request.run_id)
        except FileNotFoundError:
            return None
        return report if report.ended >= started else None


def _find_parents() -> list[tuple[int, float]]:
    """This task and its supervisor: a driver on this machine stops when either is gone."""
    task = psutil.Process()
    return [(process.pid, start_of(process.pid)) for process in (task, task.parent()) if process]
