"""The task that sees to further sinks which a run could not reach, beside what the table wakes."""

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from ..errors import SluiceError
from ..report import RunReport
from ..report.ending import Ending
from ..spec import Pipeline, Refill, RunRequest, load_pipeline
from .named import pipelines_folder
from .submit import RunPipelineOperator
from .submit_hook import PrivateSubmitHook
from .tasks import find_report


class DeliverOperator(RunPipelineOperator):
    """Fails where the run left rows undelivered, and sends them when it is tried again, by a run
    that reads no source; where nothing is lacking it starts no Spark."""

    def execute(self, context) -> None:
        """Judge the run's report; on a later try, send what is due.

        Raises AirflowException where trying again may help, AirflowFailException where a person
        has to mend the sink: clear the task when that is done.
        """
        try:
            pipeline = load_pipeline(pipelines_folder() / self.pipeline_file)
            report = find_report(pipeline.name, context["run_id"])
        except (SluiceError, FileNotFoundError) as error:
            raise AirflowFailException(str(error)) from error
        if not report.undelivered:
            self.log.info("Every further sink has what the target took in.")
            return
        if context["ti"].try_number > 1:
            super().execute(context)
            return
        ending = Ending.behind(report.undelivered)
        if any(lack.needs_person for lack in report.undelivered):
            raise AirflowFailException(
                f"{ending.error} Mend it, then clear this task; the next run tries again as well."
            )
        raise AirflowException(f"Tried again: {ending.error}")

    def _make_request(self, pipeline: Pipeline, hook: PrivateSubmitHook, context) -> RunRequest:
        request = self._begin_request(hook, f"{context['run_id']}__deliver")
        return request.model_copy(update={"refill": Refill(), "backlog_bytes": 0})

    def _leaves_sinks(self, report: RunReport) -> bool:
        return False
