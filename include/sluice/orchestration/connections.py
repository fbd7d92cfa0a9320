"""Hands the Airflow connections that a pipeline names to the process that runs it: in its
environment, as Airflow itself writes them.
"""

import json

from airflow.exceptions import AirflowNotFoundException
from airflow.sdk import BaseHook

from ..errors import SpecError
from ..spec import Pipeline, connection_variable


def export_connections(pipeline: Pipeline) -> dict[str, str]:
    """Environment variable -> JSON of each connection that a source or sink names.

    Raises SpecError for one Airflow does not have.
    """
    named = {
        name
        for step in pipeline.steps
        for part in (*step.sources, *step.sinks)
        for name in part.connections
    }
    return {connection_variable(name): _as_json(pipeline.name, name) for name in sorted(named)}


def _as_json(pipeline: str, name: str) -> str:
    try:
        found = BaseHook.get_connection(name)
    except AirflowNotFoundException:
        raise SpecError(
            "no such Airflow connection",
            where=f"pipeline {pipeline}: connection",
            value=name,
            do=f"Create it: airflow connections add {name} --conn-type ...",
        ) from None
    fields = ("conn_type", "host", "login", "password", "schema", "port", "extra")
    return json.dumps(
        {field: value for field in fields if (value := getattr(found, field)) is not None}
    )
