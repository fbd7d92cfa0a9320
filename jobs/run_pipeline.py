"""spark-submit entry point: a RunRequest in, a stored RunReport and an exit code out."""

import argparse
import sys

from sluice.report import render_text
from sluice.runner import run_pipeline
from sluice.spec import RunRequest


def main(argv: list[str] | None = None) -> int:
    """Run the pipeline of `--request` (RunRequest as JSON) and print its report; the exit code is
    the report's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--request", required=True, help="RunRequest as JSON")
    report = run_pipeline(RunRequest.model_validate_json(parser.parse_args(argv).request))
    print(render_text(report), flush=True)
    return int(report.exit_code)


if __name__ == "__main__":
    sys.exit(main())
