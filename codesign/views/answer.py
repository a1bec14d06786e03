"""The answer of a study on one page: best beside baseline, what it is made of, what binds, what was refused."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from codesign.views.explain import (
    Trial,
    bill_table,
    binds_text,
    delivery_text,
    design_table,
    less,
    refusals_table,
    shown,
    violations_table,
    waterfall_table,
    workload_table,
)


def answer(summary: Mapping[str, Any]) -> RenderableType:
    """Everything `study run` and `study best` print, from the documented JSON of the same command."""
    best = summary.get("best")
    parts: list[RenderableType] = [headline(summary)]
    if best:
        reference = best_baseline(summary["baselines"], summary["objectives"])
        parts += [design_table(best, reference), workload_table(best), waterfall_table(best, reference)]
        parts += [bill_table(best, reference), delivery_text(best), binds_text(best)]
    if summary.get("closest"):
        parts.append(violations_table(summary["closest"], f"the closest, trial {summary['closest']['number']}, breaks"))
    if summary["finished"]:
        parts.append(refusals_table(summary["refusals"]))
    parts.append(next_commands(summary))
    return Group(*parts)


def best_baseline(baselines: Sequence[Trial], objectives: Mapping[str, str]) -> Trial | None:
    """The feasible baseline with the best first objective, or the first one if none is feasible."""
    if not baselines:
        return None
    name, direction = next(iter(objectives.items()))
    sign = 1.0 if direction == "minimize" else -1.0
    return min(baselines, key=lambda trial: (not trial["feasible"], sign * trial["values"][name]))


def headline(summary: Mapping[str, Any]) -> RenderableType:
    """One paragraph: what was asked, how much was tried, what is best against the best baseline."""
    feasible = f"{100 * summary['feasible_frac']:.1f} % feasible" if summary["finished"] else "none of them finished"
    lines = [
        Text(summary.get("question", ""), style="bold"),
        Text(f"study {summary['study']}: {summary['trials']} trials, {feasible}, sampler {summary['sampler']}"),
    ]
    if summary.get("reason") and summary["state"] != "running":
        lines.append(Text(f"{summary['state']}: {summary['reason']}"))
    best = summary.get("best")
    if not summary["finished"]:
        lines.append(Text("no trial has finished: there is no answer, and no reason why there is none", style="red"))
        return Group(*lines)
    if best is None:
        lines.append(Text("nothing feasible was found; the tables below say which rules refused", style="red"))
        return Group(*lines)
    for name, direction in summary["objectives"].items():
        lines += _best_lines(summary, name, direction)
    if len(summary["objectives"]) > 1:
        lines += _front_lines(summary)
    if summary["exhausted"]:
        lines.append(Text("every design of the space was tried: searching longer finds nothing else"))
    if summary["edges"]:
        ends = ", ".join(
            f"{e['parameter']} {shown(e['parameter'], e['value'])} ({e['edge']})" for e in summary["edges"]
        )
        lines.append(
            Text(f"stands at the end of its range; whether it gains beyond was not asked: {ends}", style="yellow")
        )
    return Group(*lines)


def _best_lines(summary: Mapping[str, Any], name: str, direction: str) -> list[Text]:
    """The best design by one objective, beside the baseline that is best by it."""
    leader = summary["best_of"][name]
    value = leader["values"][name]
    others = "".join(f"; {other} {shown(other, there)}" for other, there in leader["values"].items() if other != name)
    text = f"best {name}: {shown(name, value)}{less(name)} (trial {leader['number']}{others})"
    reference = best_baseline(summary["baselines"], {name: direction})
    if reference is None or not reference["feasible"]:
        return [Text(text, style="green")]
    known = reference["values"][name]
    if known:
        text += f", {100.0 * (value / known - 1.0):+.1f} % against {reference['source']} at {shown(name, known)}"
    lines = [Text(text, style="green")]
    if known < value if direction == "minimize" else known > value:
        than = "is better" if len(summary["objectives"]) == 1 else f"has a better {name}"
        advice = "so far: search longer, or offer" if not summary["exhausted"] else "there can be: offer the space"
        said = f"{than} than every trial {advice} what it has"
        lines.append(Text(f"{reference['source']}, evaluated whole, {said}", style="yellow"))
    return lines


def _front_lines(summary: Mapping[str, Any]) -> list[Text]:
    """With several objectives there is no one answer: how many there are, where they are, which one is explained."""
    where = next((line for line in summary.get("next", []) if line.startswith("codesign study pareto ")), "")
    first, best, count = next(iter(summary["objectives"])), summary["best"], len(summary["front"])
    trials = "1 trial" if count == 1 else f"{count} trials"
    return [
        Text(f"front: {trials} that no other beats in every objective; see all: {where}", style="green"),
        Text(f"explained below: trial {best['number']}, the best {first}"),
    ]


def next_commands(summary: Mapping[str, Any]) -> RenderableType:
    """Commands that a reader would want now."""
    return Group(Text("next:", style="bold"), *(Text(f"  {line}") for line in summary.get("next", [])))
