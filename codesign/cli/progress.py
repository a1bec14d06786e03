"""Live progress of a study or a sweep: done of total, best so far, what binds it, feasible share, rate, time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[Any], None]


@contextmanager
def progress(objectives: tuple[str, ...], quiet: bool) -> Iterator[Report | None]:
    """A callback for `Study.run`; silent for JSON, one line per report where there is no terminal."""
    if quiet:
        yield None
        return
    with _bar() as update:

        def report(now: Any) -> None:
            share = now.feasible_count / now.done_count if now.done_count else 0.0
            update(now, f"{_best(now, objectives)}  feasible {100 * share:.0f} %", now.trials_per_s)

        yield report


@contextmanager
def sweep_progress(quiet: bool) -> Iterator[Report | None]:
    """A callback for a sweep: chunks done, points per second."""
    if quiet:
        yield None
        return
    with _bar() as update:
        yield lambda now: update(now, f"feasible {now.feasible_count:,}", now.points_per_s)


def _best(now: Any, objectives: tuple[str, ...]) -> str:
    from codesign.views.explain import shown

    if not now.best_each:
        return "no feasible design yet"
    if len(objectives) > 1:  # no one trial is the best: each objective's best, and how many stand beside each other
        each = ", ".join(f"{n} {shown(n, v)}" for n, v in zip(objectives, now.best_each, strict=True))
        return f"best {each}; {now.front_count} on the front"
    text = f"best {shown(objectives[0], now.best_each[0])}"
    return f"{text} (bound by {now.binds['now']})" if now.binds else text


@contextmanager
def _bar() -> Iterator[Callable[[Any, str, float], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda now, text, per_s: console.print(
            f"{now.done_count}/{now.total_count}  {text}  {_rate(now, per_s)}", soft_wrap=True
        )
        return
    columns = (BarColumn(24), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting workers", total=None)

        def update(now: Any, text: str, per_s: float) -> None:
            said = f"{text}  {_rate(now, per_s)}"
            bar.update(task, completed=now.done_count, total=now.total_count, description=said)

        yield update


def _rate(now: Any, per_s: float) -> str:
    left = "" if now.left_s is None else f", {now.left_s:.0f} s left"
    return f"{per_s:,.1f}/s{left}"
