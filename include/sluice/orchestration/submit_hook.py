"""Airflow's hook for spark-submit, with everything that may be secret off the command line."""

from collections.abc import Mapping
from typing import cast

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook

_DRIVER_ENVIRONMENT = {"yarn": "spark.yarn.appMasterEnv.", "k8s": "spark.kubernetes.driverEnv."}


class PrivateSubmitHook(SparkSubmitHook):
    """Submits with the settings of a properties file, above the site's own spark-defaults.conf."""

    @classmethod
    def of(cls, hook: SparkSubmitHook) -> "PrivateSubmitHook":
        """The hook that an operator made: it names the class of its hook itself."""
        hook.__class__ = cls
        return cast("PrivateSubmitHook", hook)

    def prepare(self, name: str, properties_file: str, arguments: list[str]) -> None:
        """Say what is submitted: the application's name, its settings, and its arguments."""
        self._name, self._properties_file, self._application_args = name, properties_file, arguments

    @property
    def master(self) -> str:
        """What `--master` will say."""
        return self._connection["master"]

    @property
    def runs_elsewhere(self) -> bool:
        """True where the driver is not a child of this process."""
        return self._connection["deploy_mode"] == "cluster"

    @property
    def exit_code(self) -> int | None:
        """How spark-submit ended; None when it was not started."""
        return self._submit_sp.returncode if self._submit_sp else None

    def hand_environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Give the driver environment variables; returns the settings that take them along.

        The hook's own `env_vars` become `--conf` on YARN and Kubernetes, for all to read.
        """
        self._env = dict(env)
        if not self.runs_elsewhere:
            return {}
        prefix = next((p for at, p in _DRIVER_ENVIRONMENT.items() if at in self.master), None)
        if prefix is None:
            self._env_vars = (
                self._env
            )  # a standalone cluster has no place for them: the hook says so
            return {}
        return {f"{prefix}{name}": value for name, value in env.items()}

    def _build_spark_common_args(self) -> list[str]:
        # A properties file takes the place of spark-defaults.conf unless spark-submit is told not
        # to.
        return ["--load-spark-defaults", *super()._build_spark_common_args()]
