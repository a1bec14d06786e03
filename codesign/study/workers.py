"""The only file that knows Ray: a pool of actors, one per core, that evaluate pieces of work and may die doing it.

Evaluation is pure, so a piece that was lost is simply given to somebody else. A piece that loses its worker twice is
split until the one row to blame stands alone; that row is recorded as failed with its reason. A cluster of our own
joins nobody else's, sends no usage statistics, keeps its token and files in the run's folder and prints nothing.
"""

import logging
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from codesign.errors import ExecutorError
from codesign.study.executor import Finished, Outcome
from codesign.study.parameters import Value
from codesign.study.problem_protocol import Evaluated, Problem, ProblemRecipe, check_evaluated

_LONGEST_FOLDER = 43  # Ray puts sockets below its folder, and a socket's path ends at 107 characters
_RUN_FOLDER = Path(".codesign")
_OBJECT_STORE_BYTES = 100_000_000
_CLUSTER_MB, _WORKER_MB = 700, 250  # what a local cluster needs before and per worker; measured 1.2 GB with two
_token = secrets.token_hex(32)  # one per process: Ray remembers the first it saw
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_AUTH_MODE": "token",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass(slots=True)
class _Task:
    key: Any
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(slots=True, eq=False)
class _Worker:
    actor: Any
    reference: Any
    ready: bool = False
    task: _Task | None = None
    deadline: float = field(default=float("inf"))


class RayPool:
    """Workers that each hold the problem once; tasks in, outcomes out, in any order."""

    def __init__(
        self,
        workers_count: int | None = None,
        *,
        address: str = "local",
        folder: Path | None = None,
        task_limit_s: float = 900.0,
        start_limit_s: float = 180.0,
        keep: bool = False,
    ) -> None:
        self.address = address
        self.workers_count = workers_count or os.cpu_count() or 1
        self._asked_count = workers_count
        self._folder = folder
        self._task_limit_s = task_limit_s
        self._start_limit_s = start_limit_s
        self._keep = keep  # the cluster outlives `close`, for the next study; `shutdown` ends it
        self._workers: list[_Worker] = []
        self._queue: deque[_Task] = deque()
        self._saved: dict[str, str | None] = {}
        self._scratch: Path | None = None
        self._recipe: Any = None
        self._silent_since = 0.0
        self._stillborn_count = 0
        self._ray: Any = None

    @property
    def local(self) -> bool:
        """Whether the cluster is ours and on this machine."""
        return self.address == "local"

    @property
    def idle_count(self) -> int:
        """Workers that wait for work, those still starting included, less the tasks already queued."""
        return sum(w.task is None for w in self._workers) - len(self._queue)

    def start(self, recipe: ProblemRecipe) -> None:
        """Start or join a cluster and wait for the first worker.

        Raises:
            ExecutorError: no memory, no answer, or the problem cannot be built in a worker.
        """
        if self._ray is None:
            self._connect()
        self._recipe = self._ray.put(recipe)
        self._workers = [self._hired() for _ in range(self.workers_count)]
        self._silent_since = time.monotonic()
        while not any(w.ready for w in self._workers):
            self.poll(5.0)

    def submit(self, key: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Queue ``function(problem, *arguments)`` for the next free worker."""
        self._queue.append(_Task(key, function, arguments))
        self._dispatch()

    def poll(self, timeout_s: float) -> list[Outcome]:
        """Outcomes since the last call; waits at most this long for something to happen."""
        self._dispatch()
        now = time.monotonic()
        busy = {w.reference: w for w in self._workers if w.reference is not None}
        if not busy:
            return []
        patience = min(timeout_s, *(w.deadline - now for w in busy.values()), 5.0)
        done, _ = self._ray.wait(list(busy), num_returns=1, timeout=max(patience, 0.0))
        if done and len(busy) > 1:
            done, _ = self._ray.wait(list(busy), num_returns=len(busy), timeout=0)
        outcomes = [o for reference in done if (o := self._settle(busy[reference])) is not None]
        outcomes += self._overdue()
        self._dispatch()
        self._check_capacity(bool(done))
        return outcomes

    def cancel(self) -> None:
        """Forget what is queued; what runs may finish unseen."""
        self._queue.clear()

    def close(self) -> None:
        """Let every worker go, and the cluster too unless it is kept."""
        self._queue.clear()
        if self._ray is not None and self._ray.is_initialized():
            for worker in self._workers:
                self._ray.kill(worker.actor, no_restart=True)
        self._workers = []
        if not self._keep:
            self.shutdown()

    def shutdown(self) -> None:
        """Stop a cluster of our own or leave another's, and put the environment back."""
        if self._ray is not None and self._ray.is_initialized():
            self._ray.shutdown()
        self._ray = None
        for name, value in self._saved.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._saved = {}
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)
            self._scratch = None

    # -------------------------------------------------------------------------------------------------- workers

    def _hired(self) -> _Worker:
        ray = self._ray
        actor = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Actor).remote(self._recipe)
        return _Worker(actor, actor.ready.remote())

    def _dispatch(self) -> None:
        for worker in self._workers:
            if not self._queue:
                return
            if worker.ready and worker.task is None:
                worker.task = self._queue.popleft()
                worker.reference = worker.actor.call.remote(worker.task.function, *worker.task.arguments)
                worker.deadline = time.monotonic() + self._task_limit_s

    def _settle(self, worker: _Worker) -> Outcome | None:
        """Take what a worker delivers: readiness, a result, or its death."""
        try:
            result = self._ray.get(worker.reference)
        except self._ray.exceptions.RayTaskError as error:
            raise (error.cause if isinstance(error.cause, Exception) else error) from None
        except self._ray.exceptions.RayError as error:
            return self._buried(worker, _said(error))
        worker.reference, worker.deadline = None, float("inf")
        if not worker.ready:
            worker.ready, self._stillborn_count = True, 0
            return None
        task, worker.task = worker.task, None
        return None if task is None else Outcome(task.key, result, None)

    def _buried(self, worker: _Worker, why: str) -> Outcome | None:
        """Replace a dead worker."""
        self._workers.remove(worker)
        if not worker.ready:
            self._stillborn_count += 1
            if self._stillborn_count > max(3, self.workers_count):
                raise ExecutorError(f"workers die before they are ready: {why}")
        self._workers.append(self._hired())
        return None if worker.task is None else Outcome(worker.task.key, None, why)

    def _overdue(self) -> list[Outcome]:
        now = time.monotonic()
        late = [w for w in self._workers if w.task is not None and w.deadline <= now]
        outcomes = []
        for worker in late:
            self._ray.kill(worker.actor, no_restart=True)
            outcome = self._buried(worker, f"took longer than {self._task_limit_s:g} s")
            outcomes += [] if outcome is None else [outcome]
        return outcomes

    def _check_capacity(self, heard: bool) -> None:
        if heard or any(w.ready for w in self._workers):
            self._silent_since = time.monotonic()
        elif time.monotonic() - self._silent_since > self._start_limit_s:
            raise ExecutorError(
                f"no worker became ready within {self._start_limit_s:g} s: the cluster has no free cores or lost them; "
                "finished trials are safe, run the same command again"
            )

    # ------------------------------------------------------------------------------------------------- beginning

    def _connect(self) -> None:
        if self.local:
            self._check_memory()
            self._own_environment()
        import ray

        if ray.is_initialized():
            raise ExecutorError("this process already uses a Ray cluster; run studies from a process of their own")
        loud: Any = ray._private.worker
        listen, loud.listen_error_messages = loud.listen_error_messages, _listen_to_nothing
        try:
            ray.init(**self._options())
        except Exception as error:  # Ray raises a dozen unrelated types from here
            self.shutdown()
            said = str(error).strip().splitlines() or [type(error).__name__]
            raise ExecutorError(f"Ray at {self.address!r} could not be started or reached: {said[0]}") from error
        finally:
            loud.listen_error_messages = listen
        self._ray = ray
        if not self.local:
            nodes: Callable[[], list[dict[str, Any]]] = ray.nodes
            cores = sum(node["Resources"].get("CPU", 0.0) for node in nodes() if node["Alive"])
            self.workers_count = self._asked_count or max(1, int(cores))

    def _check_memory(self) -> None:
        need, free = _CLUSTER_MB + _WORKER_MB * self.workers_count, free_memory_mb()
        if free is not None and free < need:
            raise ExecutorError(
                f"no memory for Ray: {self.workers_count} workers need about {need} MB and {free:.0f} MB are free; "
                "use fewer workers or --executor inline, which gives the same trials"
            )

    def _own_environment(self) -> None:
        folder = (self._folder or _RUN_FOLDER).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        inside = folder if len(str(folder)) <= _LONGEST_FOLDER - 19 else None  # else a temporary one, also removed
        for left in folder.glob("r[0-9]*-*"):  # of drivers that were killed
            if not Path(f"/proc/{left.name[1:].split('-')[0]}").exists():
                shutil.rmtree(left, ignore_errors=True)
        self._scratch = Path(tempfile.mkdtemp(prefix=f"r{os.getpid()}-", dir=inside or "/tmp"))
        token = self._scratch / "token"
        token.touch(mode=0o600)
        token.write_text(_token)
        for name, value in {**_QUIET, "RAY_AUTH_TOKEN_PATH": str(token)}.items():
            self._saved[name] = os.environ.get(name)
            os.environ[name] = value

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "address": self.address,
            "log_to_driver": False,
            "logging_level": logging.ERROR,
            "configure_logging": True,
        }
        if self.local:
            options |= {
                "num_cpus": self.workers_count,
                "include_dashboard": False,
                "object_store_memory": _OBJECT_STORE_BYTES,
                "_temp_dir": str(self._scratch),
            }
        return options


class RayExecutor:
    """Studies on a pool: a batch is cut into one piece per worker, answers are put together in the order of rows."""

    name = "ray"

    def __init__(self, pool: RayPool, *, least_rows: int = 4) -> None:
        self._pool = pool
        self._least_rows = least_rows
        self._problem: Problem | None = None
        self._batches: dict[int, _Batch] = {}

    @property
    def workers_count(self) -> int:
        """How many evaluate at once."""
        return self._pool.workers_count

    @property
    def remote(self) -> bool:
        """Whether workers may sit on other machines."""
        return not self._pool.local

    def start(self, recipe: ProblemRecipe, problem: Problem) -> None:
        """Start the pool."""
        self._problem = problem
        self._pool.start(recipe)

    def submit(self, key: int, rows: Sequence[Mapping[str, Value]]) -> None:
        """Cut a batch into pieces and queue them."""
        assert self._problem is not None
        self._batches[key] = _Batch(rows, len(self._problem.objectives), len(self._problem.rules))
        size = max(-(-len(rows) // self.workers_count), self._least_rows)
        for start in range(0, len(rows), size):
            self._send(_Piece(key, start, min(start + size, len(rows)), 0))

    def wait(self, timeout_s: float) -> list[Finished]:
        """Batches whose last piece arrived."""
        for outcome in self._pool.poll(timeout_s):
            piece: _Piece = outcome.key
            if outcome.lost is None:
                self._batches[piece.key].put(piece.start, outcome.result)
            else:
                self._again(piece, outcome.lost)
        done = [key for key, batch in self._batches.items() if batch.complete]
        return [self._finished(key, self._batches.pop(key)) for key in done]

    def close(self) -> None:
        """Stop the pool."""
        self._pool.cancel()
        self._pool.close()

    def _send(self, piece: "_Piece") -> None:
        rows = self._batches[piece.key].rows[piece.start : piece.stop]
        self._pool.submit(piece, evaluate_rows, rows)

    def _again(self, piece: "_Piece", why: str) -> None:
        """A piece lost its worker: once more as it is, then in halves, until one row stands alone."""
        batch = self._batches[piece.key]
        if piece.losses_count == 0 and (piece.whole or piece.stop - piece.start == 1):
            self._send(_Piece(piece.key, piece.start, piece.stop, 1, piece.whole))
        elif piece.stop - piece.start == 1:
            batch.fail(piece.start, f"lost its worker twice, alone the second time: {why}")
        else:
            middle = (piece.start + piece.stop) // 2
            for start, stop in ((piece.start, middle), (middle, piece.stop)):
                self._send(_Piece(piece.key, start, stop, 0, whole=False))

    def _finished(self, key: int, batch: "_Batch") -> Finished:
        assert self._problem is not None
        return Finished(key, check_evaluated(batch.evaluated(), len(batch.rows), self._problem), dict(batch.failed))


@dataclass(frozen=True, slots=True)
class _Piece:
    key: int
    start: int
    stop: int
    losses_count: int
    whole: bool = True  # not yet split


class _Batch:
    """Answers to one batch as they come in."""

    def __init__(self, rows: Sequence[Mapping[str, Value]], objectives_count: int, rules_count: int) -> None:
        self.rows = rows
        self.failed: dict[int, str] = {}
        self._answered = np.zeros(len(rows), dtype=bool)
        self._repaired: list[dict[str, Value]] = [dict(row) for row in rows]
        self._values = np.zeros((len(rows), objectives_count))
        self._constraints = np.zeros((len(rows), rules_count))
        self._details = ["{}"] * len(rows)

    @property
    def complete(self) -> bool:
        """Whether every row has an answer or a reason."""
        return bool(self._answered.all())

    def put(self, start: int, part: Evaluated) -> None:
        """Answers to the rows from ``start`` on."""
        stop = start + len(part.repaired)
        self._repaired[start:stop] = part.repaired
        self._values[start:stop] = part.values
        self._constraints[start:stop] = part.constraints
        self._details[start:stop] = part.details
        self._answered[start:stop] = True

    def fail(self, row: int, why: str) -> None:
        """No answer to a row, ever."""
        self.failed[row] = why
        self._answered[row] = True

    def evaluated(self) -> Evaluated:
        """All answers; rows without one hold zeros and are listed in ``failed``."""
        return Evaluated(self._repaired, self._values, self._constraints, self._details)


class _Actor:
    """A worker: the problem, built once."""

    def __init__(self, recipe: ProblemRecipe) -> None:
        self._problem = recipe()

    def ready(self) -> int:
        """Answers once the problem is built."""
        return os.getpid()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """One piece of work."""
        return function(self._problem, *arguments)


def evaluate_rows(problem: Problem, rows: Sequence[Mapping[str, Value]]) -> Evaluated:
    """What a worker does with a piece of a batch."""
    return problem.evaluate(rows)


def free_memory_mb() -> float | None:
    """Memory this process may still use: the machine's, or less where a container allows less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    free = next((float(line.split()[1]) / 1024.0 for line in lines if line.startswith("MemAvailable")), None)
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if free is not None and limit.exists() and used.exists() and (text := limit.read_text().strip()) != "max":
        free = min(free, (float(text) - float(used.read_text())) / 1048576.0)
    return free


def _listen_to_nothing(_worker: Any, stopped: threading.Event) -> None:
    """In place of Ray's thread that prints deaths of workers into our display: `poll` sees and counts them itself."""
    stopped.wait()


def _said(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
