"""The demo: three days of orders with everything that goes wrong in real ones, drained by a real
Airflow.
"""
