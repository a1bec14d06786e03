"""Where work is done, by the name a user gives it: in this process, or on Ray."""

from typing import Any

from codesign.errors import UsageError
from codesign.study.executor import Executor, InlineExecutor, InlinePool


def executor_of(name: str, workers: int, address: str) -> Executor:
    """Inline, or Ray actors on a cluster of its own or at an address.

    Raises:
        UsageError: another name.
    """
    pool = pool_of(name, workers, address)
    if isinstance(pool, InlinePool):
        return InlineExecutor()
    from codesign.study.workers import RayExecutor

    return RayExecutor(pool)


def pool_of(name: str, workers: int, address: str) -> Any:
    """Workers of a sweep, by the name of the executor.

    Raises:
        UsageError: another name.
    """
    if name == "inline":
        return InlinePool()
    if name == "ray":
        from codesign.study.workers import RayPool

        return RayPool(workers or None, address=address)
    raise UsageError(f"no executor {name!r}; valid: inline, ray")
