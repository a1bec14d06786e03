"""The accuracy page as files: the page, its plots, and what it needs beside the report of ``codesign validate``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codesign.cases.calibrate import constant_rows
from codesign.cases.claims import claim_rows
from codesign.cases.fit_channel import figures_db
from codesign.cases.held_out import stored
from codesign.cases.reasons import reasons
from codesign.cases.rows import CaseRows, read_rows
from codesign.catalog import Catalog
from codesign.errors import CaseError
from codesign.views.accuracy import accuracy_page, worst_cases
from codesign.views.scatter import scatter_svg

#: title -> kind and metric of the lists of worst cases; all metrics where none is named
WORST = {
    "training": ("training", ""),
    "serving, time per output token": ("serving", "tpot_ms"),
    "serving, time to first token": ("serving", "ttft_ms"),
    "inference": ("inference", ""),
    "collective": ("collective", ""),
}
LEAST_COUNT = 100  # comparisons beyond the first metric of a kind that are worth a plot of their own
UNITS = {"ms": "ms", "us": "us", "ns": "ns", "s": "s", "GBs": "GB/s"}


def write_accuracy(report: Mapping[str, Any], files: Sequence[Path], page: Path, catalog: Catalog) -> list[Path]:
    """Write the page and its plots (a folder of the page's name beside it); returns what was written.

    Raises:
        CaseError: a file cannot be written.
    """
    sources = {(rows.file, rows.kind): rows for path in files for rows in read_rows(path)}
    folder = page.with_suffix("")
    plots = {title: (folder / f"{name}.svg", svg) for title, name, svg in plots_of(report["cases"])}
    text = accuracy_page(
        report,
        [(title, explained(report["cases"], *which, sources, catalog)) for title, which in WORST.items()],
        constant_rows(catalog),
        {title: f"{folder.name}/{path.name}" for title, (path, _) in plots.items()},
        stored(),
        claim_rows(catalog),
        figures_db(catalog),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, svg in plots.values():
            path.write_text(svg, encoding="utf-8")
        page.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise CaseError(f"{page}: cannot write: {problem.strerror or problem}") from None
    return [page, *(path for path, _ in plots.values())]


def explained(
    cases: Sequence[Mapping[str, Any]],
    kind: str,
    metric: str,
    sources: Mapping[tuple[str, str], CaseRows],
    catalog: Catalog,
) -> list[dict[str, Any]]:
    """The worst cases of a kind, each with a sentence under ``why``."""
    out: list[dict[str, Any]] = []
    worst = worst_cases(cases, kind, metric)
    for file in dict.fromkeys(case["file"] for case in worst):
        rows = sources[file, kind]
        at = {name: i for i, name in enumerate(rows.text("case"))}
        mine = [case for case in worst if case["file"] == file]
        words = reasons(rows.pick([at[case["case"]] for case in mine]), [case["metric"] for case in mine], catalog)
        out += [{**case, "why": why} for case, why in zip(mine, words, strict=True)]
    return out


def plots_of(cases: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    """Title, file name without ending, and SVG: a plot per kind, and of further metrics with many comparisons."""
    out = []
    known = [case for case in cases if case["predicted"] is not None and case["measured"] is not None]
    counts = Counter((case["kind"], case["metric"]) for case in known)
    for kind in dict.fromkeys(kind for kind, _ in counts):
        metrics = [metric for (of, metric), _ in counts.most_common() if of == kind]
        for place, metric in enumerate(metrics):
            if place == 0 or counts[kind, metric] >= LEAST_COUNT:
                name = kind if place == 0 else f"{kind}_{metric}"
                pairs = [(c["measured"], c["predicted"]) for c in known if (c["kind"], c["metric"]) == (kind, metric)]
                title = f"{kind}: {metric}"
                out.append((title, name, scatter_svg(pairs, title, _unit(metric))))
    return out


def _unit(metric: str) -> str:
    return UNITS.get(metric.rsplit("_", 1)[-1], "unit of the row")
