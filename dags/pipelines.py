"""Every pipeline file becomes Airflow DAGs: `<name>`, `<name>_backfill` and, where it says when,
`<name>_verify`.

A file that is broken is left to broken_pipelines.py.
"""

from airflow.sdk import get_parsing_context
from sluice.orchestration.dag import load_dags

dags, _ = load_dags(only=get_parsing_context().dag_id)
globals().update(dags)
