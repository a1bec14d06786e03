"""Who runs here, and whether the driver of an unfinished run still lives."""

import os
import platform
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codesign.store.repository import RunRecord, strict_json

INTERRUPTED = "interrupted"  # the reason stored with work whose driver was told to end


def actor() -> str:
    """Who does something: process and machine."""
    return f"{os.getpid()}@{socket.gethostname()}"


def description(executor: str, workers_count: int) -> dict[str, Any]:
    """What a run record keeps about its process and machine."""
    features = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]  # bits hold per feature set
    return {
        "host": _host(),
        "pid": os.getpid(),
        "pid_started": _started(os.getpid()) or 0.0,
        "executor": executor,
        "workers_count": workers_count,
        "platform": strict_json(
            {
                "machine": platform.machine(),
                "python": platform.python_version(),
                "numpy": np.__version__,
                "cpu_features": sorted(name for name, has in features.items() if has),
            }
        ),
    }


_abandoned: set[str] = set()


def abandon(run_id: str) -> None:
    """This process gave a run up but could not write that down."""
    _abandoned.add(run_id)


def dead(runs: Sequence[RunRecord]) -> list[str]:
    """Runs whose process on this machine is gone or gave up; of other machines only the lease can tell."""
    return [
        run.run_id
        for run in runs
        if run.run_id in _abandoned
        or (run.state == "running" and run.host == _host() and _started(run.pid) != run.pid_started)
    ]


def _host() -> str:
    """This machine since its last start: process numbers mean nothing beyond."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {boot.read_text().strip() if boot.exists() else ''}".strip()


def _started(pid: int) -> float | None:
    """When a process started, in ticks since boot; None if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] == "Z" else float(fields[19])
