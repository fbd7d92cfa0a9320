"""Pages in Airflow's own UI: every pipeline's data quality, and the report of a run."""
