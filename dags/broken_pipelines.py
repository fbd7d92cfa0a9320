"""Makes every broken pipeline file an import error in Airflow.

An error raised by a file of DAGs hides all of them; so pipelines.py builds the DAGs of the files
that are right, and this file, which holds none, raises what is wrong with the others.
"""

from airflow.sdk import get_parsing_context
from sluice.errors import SpecError
from sluice.orchestration.dag import load_dags

if get_parsing_context().dag_id is None:
    _, errors = load_dags()
    if errors:
        raise SpecError("\n".join(str(error) for error in errors))
