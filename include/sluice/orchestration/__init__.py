"""From pipelines to Airflow DAGs; the only package, beside the pages in `ui`, that knows Airflow."""
