"""CPU per suggestion whatever the history, and of a sweep's driver beside workers that do nothing. By hand.

python benchmarks/search/overhead.py
"""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from codesign.study.coding import Coding
from codesign.study.executor import InlinePool, Outcome
from codesign.study.parameters import Choices, FloatRange, IntRange, Parameter
from codesign.study.policy import resolve
from codesign.study.problem import recipe_of
from codesign.study.samplers import Told
from codesign.study.search import suggester
from codesign.study.suggest import Search
from codesign.study.sweep import run_sweep

PARAMETERS: dict[str, Parameter] = {
    **{f"word{i}": Choices(("a", "b", "c", "d")) for i in range(7)},
    **{f"real{i}": FloatRange(0.0, 1.0) for i in range(7)},
    **{f"step{i}": IntRange(1, 16) for i in range(6)},
}
BATCH = 64


def overhead(sampler: str, history: int, objectives: int) -> float:
    """Milliseconds of CPU per suggestion after so many trials, telling included."""
    coding = Coding(PARAMETERS)
    spec = resolve(sampler, coding, objectives, 10**6, BATCH)
    found = suggester(spec, coding, 1, BATCH, [("x", "minimize")] * objectives)
    search = Search(coding, found, 1, BATCH, np.empty((0, len(PARAMETERS))))
    rng = np.random.default_rng(0)
    for _ in range(0, history, BATCH):
        internal = coding.decode(rng.random((BATCH, len(PARAMETERS))))
        search.remember(internal)
        search.observe(Told(internal, rng.random((BATCH, objectives)), np.maximum(rng.normal(size=BATCH), 0.0)), None)
    started = time.process_time()
    for index in range(4):
        internal, state = search.ask(history // BATCH + index)
        told = Told(internal, rng.random((len(internal), objectives)), np.zeros(len(internal)))
        search.observe(told, state)
    return (time.process_time() - started) / (4 * BATCH) * 1e3


class NoWork(InlinePool):
    """A thousand workers that answer at once with what one real range gave."""

    workers_count = 1000

    def __init__(self) -> None:
        super().__init__()
        self._answer: Any = None

    def poll(self, timeout_s: float) -> list[Outcome]:
        """The stored answer for everything that waits."""
        if self._answer is None:
            self._answer = super().poll(timeout_s)[0]
            return [self._answer]
        waiting, self._queue = self._queue, []
        return [Outcome(key, self._answer.result, None) for key, _, _ in waiting]


def main() -> None:
    """Both tables."""
    for sampler in ("random", "sobol", "nsga2", "nsga3", "cma-es", "tpe"):
        for history in (1_000, 50_000):
            cells = [f"{k} obj. {overhead(sampler, history, k):6.3f}" for k in (1, 3)]
            print(f"{sampler:8s} after {history:6d} trials: {'  '.join(cells)} ms per suggestion", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        what: Mapping[str, Any] = {"points_count": 2_000_000, "chunk_count": 10_000, "pool": NoWork()}
        swept = run_sweep(recipe_of("link_cost"), f"sqlite:///{Path(folder) / 'bench.db'}", "bench", **what)
    first = 10_000  # the one range that was really computed ran inside the driver's clock's pauses
    print(
        f"sweep driver: {swept.driver_s / (swept.points_count - first) * 1e6:.2f} us per candidate in chunks of 10,000"
    )


if __name__ == "__main__":
    main()
