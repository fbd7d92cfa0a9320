"""The same orders by DuckDB, which keeps no table, no checkpoint and no refused rows: JSON -> one
row an id -> Parquet. Usage: duckdb_backlog.py LANDING ROOT
"""

import sys

import duckdb

COLUMNS = (
    "id: 'VARCHAR', customer: 'VARCHAR', country: 'VARCHAR', status: 'VARCHAR', price: 'DOUBLE', "
    "quantity: 'BIGINT', sku: 'VARCHAR', event_time: 'TIMESTAMP', note: 'VARCHAR', "
    "channel: 'VARCHAR'"
)


def main(landing: str, root: str) -> None:
    """Load all files of a folder."""
    orders = f"read_json('{landing}/*.json', format = 'newline_delimited', columns = {{{COLUMNS}}})"
    unique = f"SELECT DISTINCT ON (id) * FROM {orders}"
    with duckdb.connect() as database:
        database.execute(f"COPY ({unique}) TO '{root}/orders.parquet' (FORMAT parquet)")


if __name__ == "__main__":
    main(*sys.argv[1:])
