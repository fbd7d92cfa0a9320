"""From pipelines to Airflow DAGs; only this package and the pages in `ui` know Airflow."""
