"""Where rows are evaluated: in this process, or elsewhere behind the same three verbs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from codesign.study.parameters import Value
from codesign.study.problem_protocol import Evaluated, Problem, ProblemRecipe, check_evaluated


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """Answers to one submitted batch; ``failed`` holds the rows that could not be evaluated, each with its reason."""

    key: int
    evaluated: Evaluated
    failed: Mapping[int, str]


class Executor(Protocol):
    """Evaluates batches. Evaluation is pure, so where and in which pieces changes nothing."""

    @property
    def name(self) -> str:
        """What the run record says."""
        ...

    @property
    def workers_count(self) -> int:
        """How many evaluate at once."""
        ...

    @property
    def remote(self) -> bool:
        """Whether workers may sit on other machines."""
        ...

    def start(self, recipe: ProblemRecipe, problem: Problem) -> None:
        """Get ready to evaluate this problem."""
        ...

    def submit(self, key: int, rows: Sequence[Mapping[str, Value]]) -> None:
        """Queue a batch."""
        ...

    def wait(self, timeout_s: float) -> list[Finished]:
        """Batches finished since the last call; waits at most this long for the first."""
        ...

    def close(self) -> None:
        """Stop whatever `start` started."""
        ...


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task given to a pool: a result, or the reason why its worker was lost."""

    key: Any
    result: Any
    lost: str | None


class InlinePool:
    """A pool of this one process."""

    workers_count = 1
    local = True

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._queue: list[tuple[Any, Callable[..., Any], tuple[Any, ...]]] = []

    def start(self, recipe: ProblemRecipe) -> None:
        """Build the problem."""
        self._problem = recipe()

    def submit(self, key: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Queue ``function(problem, *arguments)``."""
        self._queue.append((key, function, arguments))

    def poll(self, timeout_s: float) -> list[Outcome]:  # noqa: ARG002 - the form of every executor
        """Run the oldest task."""
        if not self._queue:
            return []
        key, function, arguments = self._queue.pop(0)
        return [Outcome(key, function(self._problem, *arguments), None)]

    def close(self) -> None:
        """Forget the queue."""
        self._queue.clear()


class InlineExecutor:
    """Evaluates in this process, one batch at a time, in the order of submission."""

    name = "inline"
    workers_count = 1
    remote = False

    def __init__(self) -> None:
        self._problem: Problem | None = None
        self._queue: list[tuple[int, Sequence[Mapping[str, Value]]]] = []

    def start(self, recipe: ProblemRecipe, problem: Problem) -> None:  # noqa: ARG002 - the form of every executor
        """Use the problem the driver already built."""
        self._problem = problem

    def submit(self, key: int, rows: Sequence[Mapping[str, Value]]) -> None:
        """Queue a batch."""
        self._queue.append((key, rows))

    def wait(self, timeout_s: float) -> list[Finished]:  # noqa: ARG002 - the form of every executor
        """Evaluate the oldest batch."""
        if not self._queue or self._problem is None:
            return []
        key, rows = self._queue.pop(0)
        return [Finished(key, check_evaluated(self._problem.evaluate(rows), len(rows), self._problem), {})]

    def close(self) -> None:
        """Forget the queue."""
        self._queue.clear()
