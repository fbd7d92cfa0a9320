"""A Kafka cluster and how to reach it."""

from typing import Literal

from pydantic import Field, model_validator

from .model import Needs, Spec


class Security(Spec):
    """How a client proves who it is, and how it knows the brokers.

    Secrets come from the environment (`${NAME}`) or from an Airflow connection.
    """

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "SASL_SSL"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    username: str | None = None
    password: str | None = Field(default=None, repr=False)
    ca_file: str | None = None
    """PEM file of the authority that signed the brokers' certificates; by default those the
    system trusts."""
    certificate_file: str | None = None
    """PEM file of this client's certificate, for brokers that ask for one."""
    key_file: str | None = None
    key_password: str | None = Field(default=None, repr=False)

    @model_validator(mode="after")
    def _check_parts(self) -> "Security":
        if self.protocol.startswith("SASL") and not (self.username and self.password):
            raise ValueError(
                f"{self.protocol} needs `username` and `password`; write ${{NAME}} of an "
                "environment variable, or `connection` with an Airflow connection"
            )
        if bool(self.certificate_file) != bool(self.key_file):
            raise ValueError("a client certificate needs both `certificate_file` and `key_file`")
        return self


class KafkaCluster(Needs):
    """The brokers of a source or sink."""

    servers: str | None = None
    """Brokers to ask first: host:port,host:port."""
    security: Security | None = None
    connection: str | None = None
    """An Airflow connection (type Kafka) that says both, as `AIRFLOW_CONN_<ID>` in the environment;
    Airflow's tasks hand it on by themselves."""

    @model_validator(mode="after")
    def _check_cluster(self) -> "KafkaCluster":
        if self.servers is None and self.connection is None:
            raise ValueError(
                "say which brokers: `servers: host:port`, or `connection` with an Airflow "
                "connection"
            )
        return self

    @property
    def jar_sets(self) -> frozenset[str]:
        """Spark's connector is no part of Spark."""
        return super().jar_sets | {"kafka"}

    @property
    def connections(self) -> tuple[str, ...]:
        """The one that says where the brokers are."""
        return (self.connection,) if self.connection else ()
