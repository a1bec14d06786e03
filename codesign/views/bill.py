"""The bill as rows, what moves it, and how far it stands from published hourly costs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from codesign.catalog import Catalog, Fact
from codesign.columns import number_at
from codesign.cost.bill import Bill, CostInputs, bill
from codesign.cost.ownership import capital_recovery_frac
from codesign.cost.silicon import Programme, break_even_count
from codesign.prices import Draws, FactKey, Scenario, purchased_inputs
from codesign.units import Array, Numeric

Evaluate = Callable[[Draws], Numeric]

#: Label of each item of a bill, in the order of printing.
ITEMS = {
    "die": "dies without the interfaces below",
    "serdes": "SerDes silicon",
    "buffer": "interface buffer silicon",
    "memory": "memory",
    "package": "package, assembly, test and scrap",
    "nre": "design, masks and licences",
    "vendor_margin": "margins of vendor and integrator",
    "links": "cables and optics",
    "switches": "switches",
    "nics": "NICs",
    "host": "host and rack",
    "facility": "facility",
    "energy": "energy",
    "operations": "operations",
    "provider_margin": "margin of the provider",
}


@dataclass(frozen=True)
class BillRow:
    """One item: what it costs to buy per accelerator, per accelerator-hour, and its share of the hour."""

    item: str
    label: str
    capital_usd: float
    rate_usd_per_h: float
    share_frac: float


@dataclass(frozen=True)
class Swing:
    """What one fact does to the answer when it goes from its low to its high, all others held."""

    fact: FactKey
    unit: str
    low: float
    high: float
    at_low_usd: float
    at_high_usd: float
    base_usd: float

    @property
    def swing_usd(self) -> float:
        """Distance between both ends."""
        return abs(self.at_high_usd - self.at_low_usd)


@dataclass(frozen=True)
class GapRow:
    """One step from our hourly cost to a published one."""

    step: str
    rate_usd_per_h: float


def bill_rows(made: Bill, row: int = 0) -> list[BillRow]:
    """One candidate's bill; the last row is the total, and the rows above add up to it."""
    total = number_at(made.hourly.total_usd_per_h, row)
    rows = [
        BillRow(
            item,
            label,
            number_at(getattr(made.capital, f"{item}_usd", 0.0), row),
            rate := number_at(getattr(made.hourly, f"{item}_usd_per_h"), row),
            rate / total if total else 0.0,
        )
        for item, label in ITEMS.items()
    ]
    return [*rows, BillRow("total", "total", number_at(made.capital.total_usd, row), total, 1.0)]


def tornado(evaluate: Evaluate, facts: Mapping[FactKey, Fact], count: int = 12) -> list[Swing]:
    """The facts that move the answer most between their low and their high, largest first.

    One evaluation answers all: the draws put each fact once at its low and once at its high, along axis ``s``.

    Args:
        evaluate: From draws to the answer, shape ``(s, 1)``.
        facts: The facts it rests on, as ``prices.facts_read`` lists them.
        count: How many to keep.
    """
    wide = {key: fact for key, fact in facts.items() if fact.high > fact.low}
    answers = _one_at_a_time(evaluate, wide)
    base = float(answers[-1])
    swings = [
        Swing(key, fact.unit, fact.low, fact.high, float(answers[2 * i]), float(answers[2 * i + 1]), base)
        for i, (key, fact) in enumerate(wide.items())
    ]
    return sorted(swings, key=lambda swing: (-swing.swing_usd, swing.fact))[:count]


def band(evaluate: Evaluate, facts: Mapping[FactKey, Fact]) -> tuple[float, float]:
    """The answer with every fact at its kinder end, and with every fact at its harder end."""
    wide = {key: fact for key, fact in facts.items() if fact.high > fact.low}
    answers = _one_at_a_time(evaluate, wide)
    corners: dict[FactKey, Numeric] = {}
    for i, (key, fact) in enumerate(wide.items()):
        kind, hard = (fact.low, fact.high) if answers[2 * i] <= answers[2 * i + 1] else (fact.high, fact.low)
        corners[key] = np.array([[kind], [hard]])
    low, high = np.broadcast_to(np.asarray(evaluate(corners), dtype=float), (2, 1))[:, 0]
    return float(low), float(high)


def chance_of_being_cheaper(first_usd: Numeric, second_usd: Numeric) -> float:
    """Share of draws in which the first is cheaper; a tie is half."""
    first, second = np.broadcast_arrays(first_usd, second_usd)
    return float(np.mean(np.where(first < second, 1.0, np.where(first > second, 0.0, 0.5))))


def break_even_volume(older: CostInputs, newer: CostInputs) -> Numeric:
    """Accelerators after which the newer generation's start has paid for itself, a billion if it never does.

    Both are counted as their owner pays for them: the unit with its network, host and facility, so a SerDes that saves
    switches or optics is credited for them.
    """
    programmes = [
        Programme(
            nre_usd=inputs.design_usd + inputs.masks_usd + inputs.licences_usd,
            unit_usd=bill(replace(inputs, design_usd=0.0, masks_usd=0.0, licences_usd=0.0)).capital.total_usd,
        )
        for inputs in (older, newer)
    ]
    return break_even_count(*programmes)


def gap_rows(catalog: Catalog, part: str, who: str) -> list[GapRow]:
    """From our hourly cost of a published machine to what an analyst says it costs ``who`` to own it.

    Ours: the machine's nominal price at 10 % over four years. Then the capital cost and the life of that kind of
    owner, then the price that would close the rest, as far as published prices go; what is left is shown as such.
    The rows from the second to the last but one add up to the distance of the first and the last.

    Args:
        catalog: Prices.
        part: ``h100``, ``b200`` or ``gb200``.
        who: ``hyperscaler`` or ``neocloud``.
    """
    price = catalog.fact("systems", f"reference_{part}", "it_capital_usd")
    meter_w = catalog.value("systems", f"reference_{part}", "utility_w")
    published = catalog.value("systems", f"reference_{part}", f"{who}_usd_per_h")
    owner = "owner" if who == "hyperscaler" else "market"
    ours = {name: catalog.value("scenarios", "market", name) for name in ("interest_frac", "accelerator_life_years")}
    theirs = {name: catalog.value("scenarios", owner, name) for name in ours}

    def rate(capital_usd: float, interest_frac: float, accelerator_life_years: float) -> float:
        scenario = _plain(interest_frac, accelerator_life_years)
        return float(bill(purchased_inputs(catalog, capital_usd, meter_w, scenario)).hourly.total_usd_per_h)

    start = rate(price.value, **ours)
    funded = rate(price.value, **(ours | {"interest_frac": theirs["interest_frac"]}))
    aged = rate(price.value, **theirs)
    per_usd = float(capital_recovery_frac(theirs["interest_frac"], theirs["accelerator_life_years"])) / 8760.0
    paid_usd = float(np.clip(price.value + (published - aged) / per_usd, price.low, price.high))
    priced = rate(paid_usd, **theirs)
    return [
        GapRow(
            f"ours: {price.value:,.0f} USD, {ours['interest_frac']:.0%}, {ours['accelerator_life_years']:g} a", start
        ),
        GapRow(f"capital cost {theirs['interest_frac']:.0%}", funded - start),
        GapRow(f"life {theirs['accelerator_life_years']:g} a", aged - funded),
        GapRow(f"price {paid_usd:,.0f} USD", priced - aged),
        GapRow("not explained", published - priced),
        GapRow(f"published, {who}", published),
    ]


def tornado_svg(swings: list[Swing], width: int = 1080) -> str:
    """The tornado as an SVG drawing: one bar per fact, its ends in colour, the base as a line."""
    ends = [usd for swing in swings for usd in (swing.at_low_usd, swing.at_high_usd, swing.base_usd)] or [0.0, 1.0]
    left, right = min(ends), max(ends)
    scale = (width - 620) / (right - left or 1.0)
    top, height = 60, 100 + 22 * len(swings)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        f'font-size="12"><rect width="{width}" height="{height}" fill="white"/>',
        '<text x="20" y="24" font-size="16">what the range of each price does to the cost of a million tokens</text>',
        '<text x="20" y="44" fill="#4477aa">at the low end of its range</text>',
        '<text x="200" y="44" fill="#cc6677">at the high end of its range</text>',
    ]
    for i, swing in enumerate(swings):
        y = top + 22 * i
        parts.append(f'<text x="340" y="{y + 12}" text-anchor="end">{" ".join(swing.fact[1:])}</text>')
        for usd, colour in ((swing.at_low_usd, "#4477aa"), (swing.at_high_usd, "#cc6677")):
            x = 350 + (min(usd, swing.base_usd) - left) * scale
            wide = abs(usd - swing.base_usd) * scale
            parts.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="16" fill="{colour}"/>')
        unit = "" if swing.unit in ("1", "count") else f" {swing.unit}"
        parts.append(f'<text x="{width - 255}" y="{y + 12}">{swing.low:g} to {swing.high:g}{unit}</text>')
    if swings:
        base = swings[0].base_usd
        x = 350 + (base - left) * scale
        parts.append(f'<line x1="{x:.1f}" y1="{top - 6}" x2="{x:.1f}" y2="{height - 34}" stroke="black"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 18}" text-anchor="middle">{base:.4g} USD/Mtoken</text>')
    return "\n".join([*parts, "</svg>"])


def _plain(interest_frac: float, accelerator_life_years: float) -> Scenario:
    """Capital, energy at the meter and facility; no operations, spares or margins, as in the published sums."""
    nothing = ("maintenance_per_year", "site_usd_per_w_year", "spares_frac", "vendor_margin_frac",
               "integrator_margin_frac", "provider_margin_frac")  # fmt: skip
    whole = ("utilisation_frac", "psu_efficiency_frac", "pue_ratio")
    zero: dict[str, Numeric] = {name: 0.0 for name in nothing}
    one: dict[str, Numeric] = {name: 1.0 for name in whole}
    finance: dict[str, Numeric] = {"interest_frac": interest_frac, "accelerator_life_years": accelerator_life_years}
    return Scenario("market", overrides=zero | one | finance)


def _one_at_a_time(evaluate: Evaluate, facts: Mapping[FactKey, Fact]) -> Array:
    """Answers with each fact at its low and its high in turn, and last with none moved."""
    size = 2 * len(facts) + 1
    draws: dict[FactKey, Numeric] = {}
    for i, (key, fact) in enumerate(facts.items()):
        column = np.full((size, 1), fact.value)
        column[2 * i], column[2 * i + 1] = fact.low, fact.high
        draws[key] = column
    return np.broadcast_to(np.asarray(evaluate(draws), dtype=float), (size, 1))[:, 0]
