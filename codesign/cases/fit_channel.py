"""Fit the scalar budget of the SerDes to points of PyChOpMarg, at least two hundred of them left out.

pychopmarg.csv holds channels drawn at random and run through PyChOpMarg 3.4.0 (a public implementation of the channel
operating margin, Annexes 93A and 178A) with the receiver parameters of P802.3dj D3.3 and its MMSE optimisation.
Package class and line length, cable length and conductor (26, 28 and 30 AWG, loss through the two points of
twinax_26), plugs with a linear loss and a shunt capacitance, symbol rate from 26.6 to 106.25 GBd, 2 to 8 levels, and
a differentiated far-end aggressor of stated power were varied. Above 106.25 GBd the reference's die terminations,
drawn for that rate, lose 20 dB alone, so such points were left aside. Equalisers: 3 to 4 FFE taps (ctle); 3 FFE and 2
to 11 DFE taps limited to 0.85 and 0.15 (ffe_dfe); 12 to 87 FFE taps, one DFE tap, 6-bit quantiser, sequence detection
(adc_dsp). The search was coarse: CTLE gain in 5 dB steps, second stage 0 or -3 dB, first transmit pre-cursor 0 or
-0.1. snr_db is the signal over the sum of its noise variances at the optimum; the tool is no dependency of the
project.
"""

import csv
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from codesign.catalog import Catalog
from codesign.model.link.channel import twinax_loss_db_per_m
from codesign.model.link.inputs import ChannelInputs, SerdesFit, SerdesInputs
from codesign.model.link.serdes import slicer_snr_db
from codesign.model.link.signal import fixed_loss_db, noise_ratio
from codesign.resources import case_data
from codesign.units import Array

CLASSES = ("ctle", "ffe_dfe", "adc_dsp")
TRAILING_MM = {"a": 1.8, "b": 4.8}  # package sections behind the first, one end
SHARED = ("shape_ratio", "band_ratio", "transmitter_ratio", "slope_ratio", "crest_db", "crest_slope_ratio",
          "dispersion_exponent_ratio", "package_weight_ratio", "memory_count", "echo_exponent_ratio",
          "connector_weight_ratio", "section_weight_ratio", "echo_memory_count")  # fmt: skip
BY_CLASS = (("ffe_dfe", "feedback_frac"), ("adc_dsp", "feedback_frac"), ("ctle", "uncorrected_ratio"),
            ("ffe_dfe", "uncorrected_ratio"), *((name, "reference_echo_ratio") for name in CLASSES))  # fmt: skip
LOGARITHMIC = ("uncorrected_ratio", "reference_echo_ratio")
PRIOR_WEIGHT = 0.05
LEFT_OUT = 205
Columns = dict[str, NDArray[np.str_]]


def points() -> Columns:
    """The stored points, as columns of text."""
    with (case_data() / "pychopmarg.csv").open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def number(columns: Columns, name: str) -> Array:
    """A column as numbers."""
    return columns[name].astype(np.float64)


def left_out(columns: Columns) -> NDArray[np.bool_]:
    """The points that the check leaves out of the fit, drawn once."""
    order = np.random.default_rng(2024).permutation(len(columns["point"]))
    draw: NDArray[np.bool_] = order < LEFT_OUT
    return draw


def predicted_snr_db(columns: Columns, catalog: Catalog, values: Mapping[tuple[str, str], float]) -> Array:
    """The surrogate at each point, through the laws of the link model."""
    channel, loss, serdes = _link(columns, catalog, values)
    stored = {name: c.value for name, c in catalog.constants["channel"]["surrogate"].items()}
    energy = {name: c.value for name, c in catalog.constants["serdes"]["energy"].items()}
    stored |= {name: value for (group, name), value in values.items() if group == "surrogate"}
    noise = noise_ratio(loss, 200.0, channel, serdes, SerdesFit(**stored, **energy))
    return np.asarray(slicer_snr_db(noise, serdes.level_mismatch_ratio, 0.0))


def _link(
    columns: Columns, catalog: Catalog, values: Mapping[tuple[str, str], float]
) -> tuple[ChannelInputs, Array, SerdesInputs]:
    package = {k: {n: catalog.value("link_defaults", f"package_class_{k}", n) for n in (
        "attenuation_per_mm", "skin_sqrt_ns_per_mm", "dielectric_ns_per_mm")} for k in TRAILING_MM}  # fmt: skip
    letter = columns["package"]
    side = {n: np.array([package[k][n] for k in letter]) for n in package["a"]}
    each = {k: catalog.value("link_defaults", f"package_class_{k}", "sections_count") for k in TRAILING_MM}
    sections = np.array([each[k] for k in letter])
    lines_mm = 2.0 * (number(columns, "package_line_mm") + np.array([TRAILING_MM[k] for k in letter]))
    wire = {n: catalog.value("link_defaults", "twinax_26", n)
            for n in ("low_ghz", "low_db_per_m", "high_ghz", "high_db_per_m")}  # fmt: skip
    nyquist = 0.5 * number(columns, "symbol_rate_gbd")
    ratio, metres = number(columns, "conductor_ratio"), number(columns, "length_m")
    channel = ChannelInputs(
        package_mm=lines_mm, package_per_mm=side["attenuation_per_mm"],
        package_sqrt_ns_per_mm=side["skin_sqrt_ns_per_mm"], package_ns_per_mm=side["dielectric_ns_per_mm"],
        sections_count=2.0 * sections, board_mm=0.0, board_sqrt_ns_per_mm=0.0, board_ns_per_mm=0.0,
        connectors_count=number(columns, "connectors"), connector_db=number(columns, "connector_db"),
        connector_ghz=26.56, cable_m=metres, cable_low_ghz=wire["low_ghz"], cable_low_db_per_m=wire["low_db_per_m"],
        cable_high_ghz=wire["high_ghz"], cable_high_db_per_m=wire["high_db_per_m"], conductor_ratio=ratio,
        crosstalk_db=number(columns, "crosstalk_db"),
    )  # fmt: skip
    cable = twinax_loss_db_per_m(nyquist, **wire, conductor_ratio=ratio) * metres
    loss = np.asarray(fixed_loss_db(channel, nyquist)) + np.asarray(cable)
    com = {name: fact.value for name, fact in catalog.technology("link_defaults", "com").items()}

    def by_class(name: str) -> Array:
        at = {c: values.get((c, name), catalog.constant("channel", c, name)) for c in CLASSES}
        at |= {"adc_dsp": at["ffe_dfe"]} if name == "uncorrected_ratio" else {}
        return np.array([at[str(c)] for c in columns["equaliser"]])

    serdes = SerdesInputs(
        lane_rate_gbps=2.0 * nyquist, levels_count=number(columns, "levels"), symbol_bits=1.0, lanes_count=1.0,
        spare_lanes_count=0.0, node_nm=5.0, taps_count=number(columns, "ffe_taps") + number(columns, "dfe_taps"),
        feedback_frac=by_class("feedback_frac"), converter_bits_count=number(columns, "quantiser_bits"),
        uncorrected_ratio=by_class("uncorrected_ratio"), reference_echo_ratio=by_class("reference_echo_ratio"),
        sequence_gain_db=0.0, propagation_prob=0.0, **com, phy_ns=0.0, area_mm2=0.0, macro_depth_mm=1.0, rows_count=1.0,
        equaliser_pj_per_bit=0.0, forwarded_clock_flag=0.0, rated_pj_per_bit=0.0, rated_gbps_per_mm=0.0,
    )  # fmt: skip
    return channel, loss, serdes


def solve(columns: Columns, catalog: Catalog, keep: NDArray[np.bool_]) -> dict[tuple[str, str], float]:
    """Soft least squares in decibels over the kept points, within the bounds, drawn to the priors a little."""
    names: Sequence[tuple[str, str]] = [*(("surrogate", name) for name in SHARED), *BY_CLASS]
    stored = [catalog.constants["channel"][group][name] for group, name in names]
    logs = np.array([name in LOGARITHMIC for _, name in names])

    def scaled(number_of: Sequence[float]) -> Array:
        plain = np.array(number_of, dtype=float)
        return np.where(logs, np.log(np.where(logs, plain, 1.0)), plain)

    low, high = scaled([c.low for c in stored]), scaled([c.high for c in stored])
    start = np.clip(scaled([c.prior or c.low for c in stored]), low + 1e-6, high - 1e-6)
    part = {name: column[keep] for name, column in columns.items()}
    measured = number(part, "snr_db")
    width = (high - low) / 4.0

    def values(z: Array) -> dict[tuple[str, str], float]:
        return dict(zip(names, np.where(logs, np.exp(np.where(logs, z, 0.0)), z).tolist(), strict=True))

    def residual(z: Array) -> Array:
        error = predicted_snr_db(part, catalog, values(z)) - measured
        return np.concatenate([error, PRIOR_WEIGHT * np.sqrt(len(measured)) * (z - start) / width])

    return values(least_squares(residual, start, bounds=(low, high), loss="soft_l1").x)


def left_out_errors_db(catalog: Catalog) -> Array:
    """Errors at the points that the fit did not see."""
    columns = points()
    out = left_out(columns)
    found = solve(columns, catalog, ~out)
    part = {name: column[out] for name, column in columns.items()}
    error: Array = predicted_snr_db(part, catalog, found) - number(part, "snr_db")
    return error


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """All points, and the median gain of sequence detection."""
    columns = points()
    found = solve(columns, catalog, np.ones(len(columns["point"]), dtype=bool))
    groups: dict[str, dict[str, float]] = {}
    for (group, name), value in found.items():
        groups.setdefault(group, {})[name] = value
    groups["adc_dsp"]["uncorrected_ratio"] = groups["ffe_dfe"]["uncorrected_ratio"]
    detects = columns["equaliser"] == "adc_dsp"
    gain = (number(columns, "com_mlsd_db") - number(columns, "com_db"))[detects]
    groups["adc_dsp"]["sequence_gain_db"] = float(np.median(gain))
    return groups
