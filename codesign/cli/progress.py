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
            update(now.done_count, now.total_count, f"{_best(now, objectives)}  feasible {100 * share:.0f} %", now)

        yield report


@contextmanager
def sweep_progress(quiet: bool) -> Iterator[Report | None]:
    """A callback for a sweep: chunks done, points per second."""
    if quiet:
        yield None
        return
    with _bar() as update:
        yield lambda now: update(now.done_count, now.total_count, f"feasible {now.feasible_count:,}", now)


def _best(now: Any, objectives: tuple[str, ...]) -> str:
    from codesign.views.explain import shown

    if not now.best_values:
        return "no feasible design yet"
    text = "best " + ", ".join(shown(n, v) for n, v in zip(objectives, now.best_values, strict=True))
    return f"{text} (bound by {now.binds['now']})" if now.binds else text


@contextmanager
def _bar() -> Iterator[Callable[[int, int, str, Any], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total, text, now: console.print(f"{done}/{total}  {text}  {_rate(now)}", soft_wrap=True)
        return
    columns = (BarColumn(24), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting workers", total=None)

        def update(done: int, total: int, text: str, now: Any) -> None:
            bar.update(task, completed=done, total=total, description=f"{text}  {_rate(now)}")

        yield update


def _rate(now: Any) -> str:
    left = "" if now.left_s is None else f", {now.left_s:.0f} s left"
    rate = getattr(now, "trials_per_s", None) or getattr(now, "points_per_s", 0.0)
    return f"{rate:,.1f}/s{left}"
