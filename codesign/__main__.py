"""``python -m codesign`` and the console script: run a command, turn our own errors into a sentence and a code."""

import os
import signal
import sys


def main() -> None:
    """Run the command line; exit codes are documented in docs/cli.md."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core per process: Ray and inline use the same
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from codesign.cli import INTERRUPTED, run

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # asked to end is asked to keep what is done
    code = run(sys.argv[1:])
    if code == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # workers are killed in the middle of their work; Ray's own farewell would crash on that
    sys.exit(code)


if __name__ == "__main__":
    main()
