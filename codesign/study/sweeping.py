"""Sweeps as users hold them: one call that screens a space and perhaps makes the best the first trials of a study."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from codesign.store.names import check_name
from codesign.store.repository import Store
from codesign.store.sweeps import SweepStore
from codesign.study.lineage import parent_sweep
from codesign.study.liveness import INTERRUPTED
from codesign.study.placing import pool_of
from codesign.study.problem import recipe_of
from codesign.study.run import run_study
from codesign.study.study import DEFAULT_STORAGE, holds
from codesign.study.sweep import promoted, run_sweep
from codesign.study.sweep_open import check_options


def sweep(
    space: str | Path,
    points: float | None = None,
    *,
    method: str | None = None,
    name: str | None = None,
    folder: Path | None = None,
    chunk: int | None = None,
    executor: str = "inline",
    workers: int = 0,
    address: str = "local",
    promote: int = 0,
    storage: str = DEFAULT_STORAGE,
    on_progress: Callable[[Any], None] | None = None,
) -> dict[str, Any]:
    """Screen a space without a sampler; finish what a former call left; perhaps promote the best into a study.

    What is not given is as it was begun; of a new sweep 100,000 points by sobol, in the folder ``sweeps``.

    Raises:
        UsageError: an option no sweep can have; nothing was written.
        StudyError, StoreError, ExecutorError: see their messages. Finished chunks stay.
    """
    recipe = recipe_of(str(space))
    asked = recipe().space
    label = name or asked.name
    target = f"{label}_promoted"
    if not holds(storage, lambda store: SweepStore(store).find(label) is not None):
        check_name("sweep", label)
        points, folder = 100_000 if points is None else points, folder or Path("sweeps")
    check_options(label, points, method, chunk, folder)
    if promote:
        check_name("study", target)
    pool = pool_of(executor, workers, address)
    summary = run_sweep(
        recipe,
        storage,
        label,
        points_count=None if points is None else int(points),
        method=method,
        chunk_count=chunk,
        folder=folder,
        pool=pool,
        on_progress=on_progress,
    )
    if summary.reason == INTERRUPTED:
        raise KeyboardInterrupt
    found = promote > 0 and summary.feasible_count > 0
    if found:
        with Store(storage) as store:
            first = promoted(store, label, promote)
        total = asked.search.trials + len(first)
        run_study(recipe, storage, target, trials_total=total, first_rows=first, parent=parent_sweep(label))
    return asdict(summary) | {"objectives": dict(asked.objectives), "promoted_to": target if found else None}
