"""``python -m codesign`` and the console script: run a command, turn our own errors into a sentence and a code."""

import os
import sys


def main() -> None:
    """Run the command line; exit codes are documented in docs/cli.md."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core per process: Ray and inline use the same
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from codesign.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
