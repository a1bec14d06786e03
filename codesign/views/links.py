"""One link of a design: its data sheet, what it breaks, and its main numbers while one thing about it varies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from codesign.candidates import Candidates, assemble_rows
from codesign.catalog import Catalog
from codesign.columns import number_at
from codesign.errors import UsageError, nearest
from codesign.hardware import link_choices, parts_of
from codesign.links import link_inputs
from codesign.metrics import Violations
from codesign.model.link.chain import Link, link
from codesign.model.link.inputs import LinkInputs
from codesign.model.link.signal import link_reach_m
from codesign.parameters import BY_NAME, Parameter
from codesign.rules import link_violations
from codesign.space import Choices, Range, Space, Value
from codesign.units import Array, unit_of
from codesign.views.curves import Panel, panels_svg, write_figure
from codesign.views.datasheet import datasheet
from codesign.views.designs import Question, Row, question, unit_row

LINKS = ("scale_up", "scale_out", "die_to_die")
LENGTH = "length_m"
LONGEST_M = 1e5  # of a length that somebody asks for
BEYOND_RATIO = 1.25  # lengths swept over what the medium is made for
STEPS = 17  # values of a number that no space narrows
TABLE = ("length_m", "raw_rate_gbps", "goodput_gbps", "insertion_loss_db", "margin_db", "pre_fec_ber", "flit_loss_prob",
         "reach_m", "base_ns", "p999_ns", "energy_pj_per_bit", "serdes_area_mm2", "medium_usd",
         "failure_fit")  # fmt: skip
#: What of the table fits a terminal.
MAIN = ("goodput_gbps", "margin_db", "reach_m", "base_ns", "p999_ns", "energy_pj_per_bit", "medium_usd", "refused")
#: Title of a panel -> line of the panel -> column of the table.
PANELS: Mapping[str, Mapping[str, str]] = {
    "rate per direction [Gb/s]": {"raw": "raw_rate_gbps", "net": "goodput_gbps"},
    "SNR beyond what the code needs [dB]": {"margin": "margin_db"},
    "reach [m]": {"reach": "reach_m", "length": "length_m"},
    "latency of a message [ns]": {"idle": "base_ns", "99.9 %": "p999_ns"},
    "energy [pJ/bit]": {"SerDes and medium": "energy_pj_per_bit"},
    "medium of one link [USD]": {"both ends": "medium_usd"},
}
STRAIGHT = ("rate per direction [Gb/s]",)  # a dead link has no rate, however small the number


@dataclass(frozen=True)
class _Found:
    """Some links of one kind, worked out: one row per candidate."""

    inputs: LinkInputs
    result: Link
    length_m: Array
    violations: Violations

    def refused(self, row: int) -> list[str]:
        """Rules that a row breaks."""
        broken = self.violations.excess[:, row] > 0.0
        return [rule.name for rule, bad in zip(self.violations.rules, broken, strict=True) if bad]


def link_rows(design: str, which: str, length_m: float | None = None) -> list[Row]:
    """One link of a design as a data sheet, at its own length or at another; what it breaks comes first.

    Raises:
        UsageError: there is no such link, or it has no length to choose.
    """
    asked = question(design)
    if _known(which) == "die_to_die":
        if length_m is not None:
            raise UsageError("--length-m works for scale_up and scale_out")
        return _die_to_die_rows(asked)
    lengths = None if length_m is None else np.array([_positive(length_m)])
    found = _found(asked.candidates, asked.catalog, which, lengths)
    v = found.violations
    refused = [
        {"section": "refused", "quantity": rule.name, "value": float(v.required[i, 0]), "unit": rule.unit,
         "source": f"available {v.available[i, 0]:.4g} {rule.unit}: {rule.meaning}"}
        for i, rule in enumerate(v.rules)
        if v.excess[i, 0] > 0.0
    ]  # fmt: skip
    return refused + [
        {"section": row.group, "quantity": row.name, "value": row.value, "unit": row.unit, "source": row.source}
        for row in datasheet(found.result, found.inputs, asked.catalog)
    ]


def link_sweep(
    design: str, which: str, parameter: str, plot: Path | None = None, length_m: float | None = None
) -> list[Row]:
    """The data sheet's main lines while a parameter of the link, or its length, takes every value it may have.

    Raises:
        UsageError: no such link or parameter, or the length is both swept and given.
    """
    asked = question(design)
    if _known(which) == "die_to_die":
        raise UsageError("--sweep works for scale_up and scale_out")
    lengths: Array | None
    values: Sequence[Value]
    decided: list[dict[str, Value]]
    if parameter == LENGTH:
        if length_m is not None:
            raise UsageError("--length-m holds the length that --sweep length_m varies; give one of them")
        name, lengths = LENGTH, _lengths(asked, which)
        values, decided = lengths.tolist(), [{} for _ in lengths]
    else:
        chosen = _swept(which, parameter)
        name, values = chosen.name, _values(chosen, asked.space, asked.catalog)
        decided = [{name: value} for value in values]
        lengths = None if length_m is None else np.full(len(values), _positive(length_m))
    found = _found(assemble_rows(decided, asked.space), asked.catalog, which, lengths)
    columns = {**found.result.columns(), "length_m": found.length_m, "reach_m": link_reach_m(found.inputs)}
    table = {n: np.broadcast_to(np.asarray(columns[n], dtype=np.float64), (len(values),)) for n in TABLE}
    refused = [found.refused(i) for i in range(len(values))]
    if plot is not None:
        _draw(plot, values, table, [bool(rules) for rules in refused], f"{asked.space.name}: {which} link", name)
    return [
        {name: value}
        | {n: float(column[i]) for n, column in table.items() if n != name}
        | {"refused": ", ".join(rule.removeprefix(f"{which}_") for rule in refused[i])}
        for i, value in enumerate(values)
    ]


def _known(which: str) -> str:
    if which not in LINKS:
        raise UsageError(f"no link {which!r}{nearest(which, LINKS)}")
    return which


def _positive(length_m: float) -> float:
    if not 0.0 < length_m < LONGEST_M:
        raise UsageError(
            f"--length-m: a link is longer than 0 and shorter than {LONGEST_M / 1000.0:g} km; got {length_m:g}"
        )
    return length_m


def _found(candidates: Candidates, catalog: Catalog, which: str, length_m: Array | None) -> _Found:
    choices = dict(link_choices(candidates, catalog, which))
    if length_m is not None:
        choices[LENGTH] = length_m
    inputs = link_inputs(catalog, choices)
    result, lengths = link(inputs), np.asarray(choices[LENGTH], dtype=np.float64)
    return _Found(inputs, result, lengths, link_violations(which, candidates, result, lengths, catalog))


def _lengths(asked: Question, which: str) -> Array:
    """Steps up to somewhat more than the medium is made for, and the length the design has."""
    own = float(np.asarray(link_choices(asked.candidates, asked.catalog, which)[LENGTH], dtype=np.float64)[0])
    limit = asked.catalog.value("media", asked.candidates.words(f"{which}_medium")[0], "reach_limit_m")
    return np.unique([*(float(f"{step:.3g}") for step in np.linspace(0.0, BEYOND_RATIO * limit, STEPS)[1:]), own])


def _draw(
    plot: Path, values: Sequence[Value], table: Mapping[str, Array], refused: list[bool], title: str, name: str
) -> None:
    panels = [
        Panel(up, {label: list(map(float, table[column])) for label, column in lines.items()}, up in STRAIGHT)
        for up, lines in PANELS.items()
    ]
    unit = unit_of(name)
    across = name if unit in (None, "1") else f"{name} [{unit}]"
    heading = f"{title} against {name}" + ("; hollow: breaks a rule" if any(refused) else "")
    write_figure(plot, panels_svg(values, panels, heading, across, refused), heading)


def _die_to_die_rows(asked: Question) -> list[Row]:
    """The interface between dies: what it offers, and what this design asks of it."""
    name = asked.candidates.words("die_to_die")[0]
    chip = parts_of(asked.candidates, asked.catalog).chip
    facts = asked.catalog.technology("die_to_die", name)
    rows = [{"section": name, "quantity": n, "value": fact.value, "unit": fact.unit} for n, fact in facts.items()]
    edge_mm = number_at(chip.die_to_die_edge_mm)
    asks = {
        "edge_mm": edge_mm,
        "rate_gbps": edge_mm * asked.catalog.value("die_to_die", name, "edge_gbps_per_mm"),
        "area_mm2": number_at(chip.die_to_die_mm2),
    }
    return rows + [unit_row("this design", n, value) for n, value in asks.items()]


def _swept(which: str, parameter: str) -> Parameter:
    own = {name: p for name, p in BY_NAME.items() if name.startswith(f"{which}_")} | {
        name: BY_NAME[name] for name in ("nic_rate_gbps", "node", "die_to_die")
    }
    for name in (parameter, f"{which}_{parameter}"):
        if name in own:
            return own[name]
    raise UsageError(f"--sweep: no parameter {parameter!r} of the {which} link{nearest(parameter, [*own, LENGTH])}")


def _values(chosen: Parameter, space: Space, catalog: Catalog) -> list[Value]:
    """What a parameter may be: as the space varies it, else all words, or steps between the bounds of the parameter."""
    options = space.vary.get(chosen.name)
    if isinstance(options, Choices):
        return list(options.choices)
    if chosen.is_word:
        return list(chosen.options(catalog))
    low, high = (options.low, options.high) if isinstance(options, Range) else (chosen.low, chosen.high)
    wide = low > 0.0 and high > 30.0 * low
    spaced = np.geomspace(low, high, STEPS) if wide else np.linspace(low, high, STEPS)
    numbers = [float(n) for n in (np.round(spaced) if chosen.whole else spaced)]
    return list(dict.fromkeys(int(n) if chosen.whole else float(f"{n:.6g}") for n in numbers))
