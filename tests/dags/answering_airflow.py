"""Says on the port of Airflow's page that it is healthy, and has a child in a group of its own, as
Airflow's tasks are."""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

HEALTH = {part: {"status": "healthy"} for part in ("metadatabase", "scheduler", "dag_processor")}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(HEALTH).encode())
        print("loud words of Airflow", flush=True)


if __name__ == "__main__":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], process_group=0)
    port = int(os.environ["AIRFLOW__API__PORT"])
    HTTPServer(("127.0.0.1", port), _Handler).serve_forever()
