"""One link as a data sheet: rows of name, value, unit and source; and a parameter swept. Printing is the command's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codesign.catalog import Catalog
from codesign.columns import number_at
from codesign.links import WORDS, Choice, link_inputs
from codesign.model.link.chain import Link, link
from codesign.model.link.inputs import LinkInputs
from codesign.model.link.signal import link_reach_m
from codesign.units import unit_of


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the sheet."""

    group: str
    name: str
    value: float
    unit: str
    source: str


#: group -> result -> keys of sources.yaml, or what it was computed from
SHEET: Mapping[str, Mapping[str, str]] = {
    "channel": {
        "length_m": "the design, link_defaults.yaml", "reach_limit_m": "media.yaml",
        "nyquist_ghz": "chen-2024-designcon-425g", "insertion_loss_db": "ieee-802.3dj-d3.3, twinax-26awg-blog-028",
        "fixed_loss_db": "ieee-802.3dj-d3.3", "cable_db_per_m": "twinax-26awg-blog-028",
        "reach_m": "the budget solved for the length, media.yaml", "reach_margin_m": "reach_m less length_m",
        "reach_excess_m": "length_m less reach_limit_m",
    },
    "signal": {
        "snr_db": "ieee-802.3-annex-93a, calibration/channel.yaml", "required_snr_db": "cho-yoon-2002, etc-ll-fec-1.0",
        "margin_db": "the difference of the two", "missing_db": "required less available",
        "symbol_rate_ghz": "lane rate over bits per symbol", "symbol_excess_ghz": "calibration/channel.yaml",
        "pre_fec_ber": "cho-yoon-2002",
    },
    "code": {
        "fec_frac": "fec.yaml", "codeword_failure_prob": "etc-ll-fec-1.0", "flit_loss_prob": "uec-1.0.3",
        "fec_ns": "gustlin-3ck-2018",
    },
    "rate": {
        "raw_rate_gbps": "lanes times lane rate", "line_rate_gbps": "raw less the code",
        "protocol_frac": "protocols.yaml", "retry_frac": "kurose-ross", "replay_frac": "little-1961",
        "credit_frac": "kung-n23-1994", "contention_frac": "karol-1987", "degraded_loss_frac": "media.yaml",
        "goodput_gbps": "the product of the shares",
    },
    "buffers": {
        "credit_loop_ns": "kung-n23-1994", "buffer_need_bytes": "kung-n23-1994", "buffer_given_bytes": "the design",
        "buffer_missing_bytes": "need less given", "pfc_headroom_bytes": "pfc-headroom-article",
    },
    "latency": {
        "one_way_ns": "PHY, code and medium of one hop", "base_ns": "protocols.yaml, media.yaml, serdes.yaml",
        "serial_ns": "flits of the message on the line", "queue_mean_ns": "pollaczek-1930",
        "retry_mean_ns": "kurose-ross", "retry_sd_ns": "kurose-ross", "retry_p999_ns": "kurose-ross",
        "queue_p999_ns": "kingman-1962",
        "p999_ns": "base, serial, means, and the tails beyond them",
    },
    "cost": {
        "serdes_pj_per_bit": "serdes_designs.csv", "serdes_low_pj_per_bit": "calibration/serdes.yaml",
        "serdes_high_pj_per_bit": "calibration/serdes.yaml", "medium_pj_per_bit": "media.yaml",
        "crossing_pj_per_bit": "die_to_die.yaml", "energy_pj_per_bit": "the sum", "serdes_power_w": "energy times rate",
        "medium_power_w": "energy times rate", "buffer_power_w": "opentallas-2026", "power_w": "the sum",
        "edge_mm": "serdes.yaml, die_to_die.yaml", "serdes_area_mm2": "serdes.yaml", "buffer_area_mm2": "nodes.yaml",
        "die_area_mm2": "the sum on the accelerator die", "medium_usd": "prices.yaml", "failure_fit": "media.yaml",
        "flap_fit": "media.yaml",
    },
}  # fmt: skip


def datasheet(result: Link, inputs: LinkInputs, catalog: Catalog, row: int = 0) -> list[Row]:
    """The rows of one link of a batch, in the order of the chain.

    Published energies lie within a stated factor of the fitted one; standard PHYs have the printed energy.
    """
    reach_m, medium = link_reach_m(inputs), inputs.medium
    numbers = dict(result.columns()) | {
        "length_m": medium.length_m, "reach_limit_m": medium.reach_limit_m, "reach_m": reach_m,
        "reach_margin_m": reach_m - medium.length_m, "buffer_given_bytes": inputs.flow.buffer_bytes,
        "symbol_rate_ghz": 2.0 * result.signal.nyquist_ghz,
        "serdes_low_pj_per_bit": 0.0, "serdes_high_pj_per_bit": 0.0,
    }  # fmt: skip
    flat = {name: number_at(column, row) for name, column in numbers.items()}
    printed = number_at(inputs.serdes.rated_pj_per_bit, row) > 0.0
    spread = 1.0 if printed else catalog.constant("serdes", "range", "energy_ratio")
    flat["serdes_low_pj_per_bit"] = flat["serdes_pj_per_bit"] / spread
    flat["serdes_high_pj_per_bit"] = flat["serdes_pj_per_bit"] * spread
    return [
        Row(group, name, flat[name], unit_of(name) or "", source)
        for group, names in SHEET.items()
        for name, source in names.items()
    ]


def fact_rows(catalog: Catalog, choices: Mapping[str, Choice]) -> list[Row]:
    """The facts behind the words of one link: code, medium, protocol, equaliser, each with its own source."""
    kinds = {"fec": "fec", "medium": "media", "protocol": "protocols", "equaliser": "serdes"}
    kinds |= {"die_to_die": "die_to_die"}
    rows = []
    for word, kind in kinds.items():
        technology = str(np.atleast_1d(np.asarray(choices.get(word, WORDS[word])))[0])
        for name, fact in catalog.technology(kind, technology).items():
            rows.append(Row(f"{word} {technology}", name, fact.value, fact.unit, f"{fact.source}: {fact.where}"))
    return rows


def sweep(
    catalog: Catalog, choices: Mapping[str, Choice], parameter: str, values: Sequence[Any], outputs: Sequence[str]
) -> dict[str, list[float]]:
    """Results of one link while one choice takes each of some values; the other choices stay single."""
    swept = np.asarray(values)
    found = link(link_inputs(catalog, {**choices, parameter: swept})).columns()
    return {name: [number_at(found[name], row) for row in range(len(values))] for name in outputs}
