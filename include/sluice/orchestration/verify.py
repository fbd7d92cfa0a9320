"""The task that compares a pipeline's tables with what their inputs give."""

from ..spec import Pipeline, RunRequest, Verify
from .submit import RunPipelineOperator
from .submit_hook import PrivateSubmitHook


class VerifyOperator(RunPipelineOperator):
    """Fails where a table does not hold what its inputs give, and is not tried again then."""

    def _make_request(self, pipeline: Pipeline, hook: PrivateSubmitHook, context) -> RunRequest:
        return self._begin_request(hook, context["run_id"]).model_copy(update={"verify": Verify()})
