"""Replay case files through the model and score them."""

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from codesign.cases.rows import CaseRows, Predictions, read_rows
from codesign.cases.score import cases_of, groups_of
from codesign.cases.screen import screened
from codesign.catalog import Catalog, load_catalog
from codesign.errors import CaseError, UsageError, nearest
from codesign.resources import case_data

MADE = ("case", "kind", "file", "metric", "class")  # columns that every case has or is given
#: kind of case -> module of this package with ``predict(rows, catalog) -> Predictions``
ADAPTERS: dict[str, str] = {
    "training": "training",
    "serving": "serving",
    "inference": "inference",
    "collective": "collective",
    "memory": "memory",
    "link": "link",
    "kernel": "kernel",
    "gemm": "gemm",
    "moe_gemm": "moe_gemm",
    "attention": "attention",
    "mla": "mla",
    "nccl": "nccl",
    "fast_allreduce": "fast_allreduce",
    "moe_alltoall": "moe_alltoall",
    "pam": "pam",
    "pam_inverse": "pam",
    "fec": "fec",
    "queue": "queue",
    "booksim_credit": "booksim_link",
    "booksim_link_latency": "booksim_link",
    "booksim_vc": "booksim_vc",
    "booksim_topology": "booksim_topology",
    "booksim_seeds": "booksim_topology",
    "astrasim": "astrasim",
    "htsim": "htsim",
    "memory_sim": "memory_sim",
    "checkpoint": "checkpoint",
    "straggler": "straggler",
}


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Predictions for rows of one kind.

    Raises:
        CaseError: no adapter replays this kind.
    """
    if rows.kind not in ADAPTERS:
        raise CaseError(f"{rows.file}: no model replays kind {rows.kind!r}{nearest(rows.kind, ADAPTERS)}")
    adapter = import_module(f"codesign.cases.{ADAPTERS[rows.kind]}")
    return screened(rows, lambda some: adapter.predict(some, catalog))


def validate(files: Sequence[Path], by: Sequence[str] = (), catalog: Catalog | None = None) -> dict[str, Any]:
    """The documented JSON of ``codesign validate``: every case and the grouped figures.

    Raises:
        CaseError: a file cannot be read, or holds a kind that nothing replays.
        UsageError: no file has a column to group by.
    """
    facts = catalog or load_catalog()
    batches = [rows for path in files for rows in read_rows(path)]
    known = {*MADE, *(name for rows in batches for name in rows.columns)}
    for name in by:
        if name not in known:
            raise UsageError(f"--by: no column {name!r} in these files{nearest(name, known)}")
    cases = [case for rows in batches for case in cases_of(rows, predict(rows, facts), by)]
    return {"groups": groups_of(cases, by), "cases": cases}


def shipped_files() -> list[Path]:
    """Every case file that comes with the project."""
    folder = case_data()
    paths = [*sorted(folder.glob("*.csv")), *sorted((folder / "kernels").glob("*.csv"))]
    return [path for path in [*paths, *sorted((folder / "reference").glob("*.csv"))] if _is_case_file(path)]


def _is_case_file(path: Path) -> bool:
    with path.open(encoding="utf-8") as handle:
        return handle.readline().startswith("case,kind,")


def write_report(report: dict[str, Any], path: Path) -> None:
    """Write cases and groups as strict JSON.

    Raises:
        CaseError: the file cannot be written.
    """
    try:
        path.write_text(json.dumps(report, allow_nan=False, indent=1), encoding="utf-8")
    except OSError as problem:
        raise CaseError(f"{path}: cannot write: {problem.strerror or problem}") from None


def main(arguments: Sequence[str]) -> None:
    """Print the groups of some files; a developer's short cut to ``codesign validate``."""
    for group in validate([Path(name) for name in arguments])["groups"]:
        print({k: (round(v, 2) if isinstance(v, float) else v) for k, v in group.items()})


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
