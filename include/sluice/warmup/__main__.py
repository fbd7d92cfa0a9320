"""Entry point of `python -m sluice.warmup`, a part of set-up."""

import sys

from ..errors import SluiceError
from ..launch import divert_jvm_output
from .archive import build_archive


def main() -> int:
    """Build the class archive and say where it is; the exit code is that of what went wrong."""
    try:
        with divert_jvm_output(lambda _: True, lambda text: print(text, file=sys.stderr)):
            built = build_archive()
    except SluiceError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    print(
        f"class archive: {built} ({built.stat().st_size / 1e6:.0f} MB)"
        if built
        else "class archive: this JVM made none; runs work, and start slower"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
