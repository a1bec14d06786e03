"""Hold accuracy: fail when a figure is worse than the stored one beyond noise.

``python -m codesign.cases.gate REPORT.json`` compares a report of ``codesign validate`` with ``data/figures.json``, or
the cases that ship with the project where no report is named; ``--store`` writes the figures there, which is a change
that a reviewer sees.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from codesign.cases.validate import shipped_files, validate
from codesign.resources import case_data

FIGURES = ("mape_pct", "median_ape_pct")
SLACK_POINTS, SLACK_SHARE = 0.2, 0.02  # another CPU's rounding moves a mean by far less


def figures(report: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """The figures worth holding, by kind, metric and split."""
    out = {}
    for group in report["groups"]:
        if group["n"] and group["mape_pct"] is not None:
            where = ",".join(f"{key}={value}" for key, value in group["where"].items())
            refused = group["refused"] / group["n"]
            out[f"{group['kind']}/{group['metric']}/{where}"] = {
                **{name: round(group[name], 3) for name in FIGURES},
                "refused_frac": round(refused, 4),
            }
    return out


def worse(now: Mapping[str, Mapping[str, float]], held: Mapping[str, Mapping[str, float]]) -> list[str]:
    """One sentence per figure that got worse, or that disappeared."""
    complaints = [f"{key}: no longer there" for key in held if key not in now]
    for key, old in held.items():
        for name, value in now.get(key, {}).items():
            allowed = old[name] * (1 + SLACK_SHARE) + (0.001 if name == "refused_frac" else SLACK_POINTS)
            if value > allowed:
                complaints.append(f"{key}: {name} is {value:g}, was {old[name]:g}")
    return complaints


def main(arguments: Sequence[str]) -> int:
    """Compare, or store with ``--store``; 1 when something got worse."""
    store = "--store" in arguments
    named = [word for word in arguments if not word.startswith("--")]
    now = figures(json.loads(Path(named[0]).read_text(encoding="utf-8")) if named else validate(shipped_files()))
    held_at = case_data() / "figures.json"
    if store:
        held_at.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    complaints = worse(now, json.loads(held_at.read_text(encoding="utf-8")))
    print("\n".join(complaints) or f"{len(now)} figures, none worse than the stored ones")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
