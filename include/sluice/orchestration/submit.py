"""The task that runs Spark: RunRequest in, exit code out, and only what may pass is tried again."""

import sys
from datetime import UTC, datetime

import psutil
from airflow.exceptions import AirflowNotFoundException
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from ..backlog.ranges import select_range
from ..errors import ExitCode, SluiceError
from ..launch import spark_settings
from ..report.store import read_report
from ..spec import Pipeline, RunRequest, Window, load_pipeline
from ..storage import PROJECT, Paths
from .connections import export_connections
from .pools import pipelines_folder
from .tasks import BACKLOG_KEY

JUDGED_BY_GATE = frozenset({ExitCode.DONE, ExitCode.STOPPED_BY_RULE})
"""Exit codes that leave a report, which decides in the task `gate`."""


def conclude(exit_code: int, error: str) -> None:
    """Turn an exit code into a task's fate.

    Returns where the report decides; raises AirflowSkipException when nothing was new, AirflowException for what is tried again and
    AirflowFailException for what is not.
    """
    if exit_code in JUDGED_BY_GATE:
        return
    if exit_code == ExitCode.NOTHING_NEW:
        raise AirflowSkipException("Spark found nothing new, so nothing downstream is woken.")
    if exit_code < 0 or exit_code > 128:
        raise AirflowException(
            f"The driver was killed by signal {-exit_code if exit_code < 0 else exit_code - 128} (out of memory, or its machine went away): {error}"
        )
    if exit_code == ExitCode.TRANSIENT:
        raise AirflowException(f"The run ended for a reason that may pass: {error}")
    raise AirflowFailException(
        f"The run failed (exit code {exit_code}), and trying again would not help: {error}"
    )


def choose_window(
    run_type: str, interval: tuple[datetime | None, datetime | None], params: dict
) -> Window:
    """The range of a backfill: the data interval, or for a run started by hand its `from` and `to`. Raises ValueError saying what to write."""
    start, end = params.get("from"), params.get("to")
    if run_type == "backfill":
        if start or end:
            raise ValueError(
                "`from` and `to` belong to runs started by hand; `airflow backfill create` takes --from-date and --to-date"
            )
        start, end = interval
    if not (start and end):
        raise ValueError(
            "a backfill needs both ends of its range: write `from` and `to`, for instance 2026-01-01T00:00:00Z and 2026-01-03T00:00:00Z"
        )
    return Window(start=start, end=end)


class RunPipelineOperator(SparkSubmitOperator):
    """Submits `jobs/run_pipeline.py` for one pipeline file, under Airflow's own run id.

    The request and Spark's settings are made as the task runs, by the worker that submits: only it knows its Python, its jars and the backlog.
    """

    template_fields = ()

    def __init__(self, *, pipeline_file: str, backfill: bool = False, **kwargs) -> None:
        super().__init__(application=str(PROJECT / "jobs" / "run_pipeline.py"), **kwargs)
        self.pipeline_file, self.backfill = pipeline_file, backfill

    def execute(self, context) -> None:
        """Submit, wait, and judge by exit code. Raises AirflowFailException, also where the connection or a jar is missing."""
        started = datetime.now(UTC)
        try:
            pipeline = load_pipeline(pipelines_folder() / self.pipeline_file)
            request = self._make_request(pipeline, context)
            self._prepare(pipeline, request)
        except (SluiceError, ValueError) as error:
            raise AirflowFailException(str(error)) from error
        try:
            super().execute(context)
        except AirflowFailException:
            raise
        except (AirflowException, RuntimeError) as failure:
            self._conclude_failed(pipeline, request.run_id, started, failure)

    def _make_request(self, pipeline: Pipeline, context) -> RunRequest:
        master = self._check_connection(pipeline)
        file, run_id = str(pipelines_folder() / self.pipeline_file), context["run_id"]
        parents = self._find_parents()
        if not self.backfill:
            backlog = context["ti"].xcom_pull(task_ids="probe", key=BACKLOG_KEY) or {}
            return RunRequest(
                pipeline=file,
                run_id=run_id,
                master=master,
                parents=parents,
                backlog_bytes=backlog.get("bytes"),
            )
        interval = context.get("data_interval_start"), context.get("data_interval_end")
        window = choose_window(context["dag_run"].run_type, interval, context["params"])
        sizes = [select_range(step, window).bytes for step in pipeline.steps]
        waiting = None if None in sizes else sum(sizes)
        return RunRequest(
            pipeline=file,
            run_id=run_id,
            master=master,
            parents=parents,
            backlog_bytes=waiting,
            window=window,
            write=context["params"]["write"],
        )

    def _find_parents(self) -> list[tuple[int, float]]:
        """This task and its supervisor: a driver on this machine stops when either is gone."""
        if self._hook._connection["deploy_mode"] == "cluster":
            return []
        task = psutil.Process()
        return [
            (process.pid, process.create_time()) for process in (task, task.parent()) if process
        ]

    def _check_connection(self, pipeline: Pipeline) -> str:
        """The master URL of the connection. Raises SluiceError: the hook itself would submit to YARN when the connection does not exist."""
        try:
            BaseHook.get_connection(self._conn_id)
        except AirflowNotFoundException:
            raise SluiceError(
                "no such Airflow connection",
                where=f"pipeline {pipeline.name}: spark_conn_id",
                value=self._conn_id,
                do=f"""Create it: airflow connections add {self._conn_id} --conn-type spark --conn-host 'local[*]'""",
            ) from None
        self._hook = self._get_hook()
        master = self._hook._connection[
            "master"
        ]  # what `--master` will say; the hook has no public name for it
        if "master" in pipeline.model_fields_set and pipeline.master != master:
            self.log.warning(
                "The pipeline names master %s, connection %s names %s: the connection wins.",
                pipeline.master,
                self._conn_id,
                master,
            )
        return master

    def _prepare(self, pipeline: Pipeline, request: RunRequest) -> None:
        """Fill in what spark-submit gets. Raises PreflightError when a jar is missing."""
        self.name = f"sluice-{pipeline.name}"
        self.application_args = ["--request", request.model_dump_json(exclude_none=True)]
        self.conf = spark_settings(pipeline, request.backlog_bytes, master=request.master)
        self.conf.pop("spark.master", None)  # said by `--master`
        if (
            "spark.pyspark.python" not in self.conf
            and self._hook._connection["deploy_mode"] != "cluster"
        ):
            # Another Python than ours has other packages: rules would then fail on every row instead of raising.
            self.env_vars = {
                "PYSPARK_PYTHON": sys.executable,
                "PYSPARK_DRIVER_PYTHON": sys.executable,
            }
        self.env_vars = {**(self.env_vars or {}), **export_connections(pipeline)}
        self._hook = self._get_hook()

    def _conclude_failed(
        self, pipeline: Pipeline, run_id: str, started: datetime, failure: Exception
    ) -> None:
        """Judge a submission that did not exit with 0: by the driver's exit code, or by the report where the driver runs elsewhere."""
        try:
            report = read_report(Paths.under(None, pipeline.name).reports(), run_id)
        except FileNotFoundError:
            report = None
        if report is not None and report.ended < started:
            report = None  # an earlier try wrote it
        # Without a report the end of the driver's output is the best there is; the hook puts the whole command line before it.
        error = (report and report.error) or str(failure).rpartition("Last spark-submit output:")[
            2
        ].strip()
        process = self._hook._submit_sp
        if self._hook._connection["deploy_mode"] == "cluster" or process is None:
            if report is None:
                raise failure
            return conclude(report.exit_code, error)
        return conclude(process.returncode, error)
