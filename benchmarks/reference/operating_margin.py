"""Make the points of `codesign/cases/data/pychopmarg.csv`: channels drawn at random, run through PyChOpMarg.

    python -m venv FOLDER && FOLDER/bin/pip install pychopmarg==3.4.0
    FOLDER/bin/python benchmarks/reference/operating_margin.py F 101 700 > points.csv

and the same with `H 202 300` and `L 303 260`: letter, seed and number of the points; about a second for each.

PyChOpMarg is no dependency of the project; it runs in an environment of its own. A point is a lane from die to die:
die terminations and packages of P802.3dj D3.3, a twinax of our own (loss of `twinax_26`, thinner conductors, 4.6 ns/m),
plugs with a linear loss and a shunt capacitance, and a differentiated far-end aggressor. The tool takes any number of
levels, so that PAM6 and PAM8 are uniform levels at their own symbol rate. D3.3 stops at 106.25 GBd. A die for more is
not standardised: its terminations, package pads and plugs are D3.3's with capacitance and inductance scaled by
106.25 over the symbol rate, so that they lose as much at half the symbol rate as those of 106.25 GBd do.
"""

import csv
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import skrf
from numpy.typing import NDArray
from pychopmarg.com import COM
from pychopmarg.common import OptMode
from pychopmarg.config.ieee_8023dj_d3p3 import FB, R0, TERMINATION, com_params, package_class_a, package_class_b
from pychopmarg.devmodel import DeviceModel, DevicePackage, DeviceTermination

Wave = NDArray[np.complex128]
Matrix = tuple[Wave, Wave, Wave, Wave]  # A, B, C, D of a two-port

NEPER_DB = 20.0 / np.log(10.0)
SKIN_DB, DIELECTRIC_DB = 1.0308, 0.0183  # dB/m per root of GHz and per GHz: through the two points of twinax_26
CABLE_NS_PER_M = 4.6
CABLE_OHM = 2.0 * R0
PLUG_GHZ = 26.56
NO_CROSSTALK_DB = 200.0
PACKAGES = {"a": (5e-4, 8.9e-4, 2e-4, 1.8), "b": (5e-4, 6.5e-4, 2.93e-4, 4.8)}  # gamma0, a1, a2, trailing mm
TOP_DB = {"ctle": 22.0, "ffe_dfe": 36.0, "adc_dsp": 44.0}  # largest loss drawn
SLOW = ((26.5625, (2, 4)), (53.125, (2, 4, 6, 8)), (70.8, (4, 6, 8)), (85.0, (4, 6, 8)), (106.25, (2, 4, 6, 8)))
FAST = ((141.6, (4, 6, 8)), (149.6, (8,)), (170.0, (4, 6)), (179.2, (6,)), (212.5, (4,)), (224.0, (4,)))
STEPS_GHZ = (0.2, 0.1, 0.05)  # the tool wants a whole number of samples in one period: rates are multiples of these


@dataclass(frozen=True)
class Lane:
    """One drawn channel with its receiver."""

    equaliser: str
    symbol_rate_gbd: float
    levels: int
    ffe_taps: int
    dfe_taps: int
    quantiser_bits: int
    package: str
    package_line_mm: float
    length_m: float
    conductor_ratio: float
    connectors: int
    connector_db: float
    connector_ff: float
    crosstalk_db: float


def draw(generator: np.random.Generator) -> Lane:
    """A channel that its class of equaliser might be asked to cross."""
    kind = str(generator.choice(["ctle", "ffe_dfe", "adc_dsp"], p=[0.25, 0.3, 0.45]))
    rates = SLOW if generator.random() < 0.65 else FAST
    rate, levels = rates[generator.integers(len(rates))]
    ffe, dfe, bits = 3, 0, 0
    if kind == "ctle":
        ffe = int(generator.choice([3, 4]))
    elif kind == "ffe_dfe":
        dfe = int(generator.choice([2, 5, 11]))
    else:
        ffe, dfe, bits = int(generator.choice([12, 16, 24, 40, 60, 87])), 1, 6
    letter = str(generator.choice(list(PACKAGES)))
    lines = [5.0, 8.0, 12.0, 20.0, 33.0, 45.0] if rate <= FB else [3.0, 5.0, 8.0, 12.0, 20.0]
    line, plugs = float(generator.choice(lines)), int(generator.choice([0, 2]))
    ratio = float(generator.choice([1.0, 0.794, 0.63]))
    plug_db = round(float(generator.uniform(0.6, 1.5)) * min(1.0, FB / rate), 2)
    plug_ff = round(float(generator.uniform(5.0, 20.0)) * min(1.0, FB / rate), 1)
    nyquist = rate / 2.0
    gamma, skin, dielectric, trailing = PACKAGES[letter]
    fixed = 2.0 * (line + trailing) * NEPER_DB * (gamma + skin * np.sqrt(nyquist) + dielectric * nyquist)
    fixed += plugs * plug_db * nyquist / PLUG_GHZ
    per_m = SKIN_DB * np.sqrt(nyquist) / ratio + DIELECTRIC_DB * nyquist
    length = round(max(float(generator.uniform(0.0, max(TOP_DB[kind] - fixed, 0.0)) / per_m), 0.02), 3)
    quiet = generator.random() < 0.5
    crosstalk = NO_CROSSTALK_DB if quiet else round(float(generator.uniform(45.0, 66.0)), 1)
    return Lane(kind, rate, int(generator.choice(levels)), ffe, dfe, bits, letter, line, length, ratio, plugs, plug_db,
                plug_ff, crosstalk)  # fmt: skip


def cascade(first: Matrix, second: Matrix) -> Matrix:
    """Two two-ports in a row."""
    a, b, c, d = first
    e, f, g, h = second
    return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h


def cable(lane: Lane, ghz: NDArray[np.float64]) -> skrf.Network:
    """Twinax between its plugs; the one-way delay is taken out of the forward wave, which only moves the clock."""
    skin, dielectric = SKIN_DB / NEPER_DB / lane.conductor_ratio, DIELECTRIC_DB / NEPER_DB
    delay = CABLE_NS_PER_M * lane.length_m
    causal = 1.0 - 2j / np.pi * np.log(ghz)
    wave = (skin * (1 + 1j) * np.sqrt(ghz) + dielectric * ghz * causal) * lane.length_m + 2j * np.pi * ghz * delay
    relative = CABLE_OHM / (2.0 * R0)
    whole: Matrix = (np.cosh(wave), relative * np.sinh(wave), np.sinh(wave) / relative, np.cosh(wave))
    if lane.connectors:
        ones = np.ones_like(wave)
        plug: Matrix = (ones, 0.0 * ones, 2j * np.pi * ghz * lane.connector_ff * 1e-6 * (2.0 * R0), ones)
        whole = cascade(cascade(plug, whole), plug)
    a, b, c, d = whole
    total = a + b + c + d
    kept = 10.0 ** (-lane.connectors * lane.connector_db * ghz / PLUG_GHZ / 20.0)
    early = np.exp(2j * np.pi * ghz * delay)
    s = np.zeros((len(ghz), 2, 2), dtype=complex)
    s[:, 0, 0], s[:, 1, 1] = (a + b - c - d) / total, (-a + b - c + d) / total
    s[:, 1, 0], s[:, 0, 1] = 2.0 / total * kept * early, 2.0 * (a * d - b * c) / total * kept / early
    return skrf.Network(f=ghz * 1e9, s=s, z0=2.0 * R0, f_unit="Hz")


def aggressor(lane: Lane, ghz: NDArray[np.float64]) -> skrf.Network:
    """A neighbour that couples in proportion to frequency; its power sum is stated at half the symbol rate."""
    s = np.zeros((len(ghz), 2, 2), dtype=complex)
    s[:, 1, 0] = s[:, 0, 1] = 1j * ghz / (lane.symbol_rate_gbd / 2.0) * 10.0 ** (-lane.crosstalk_db / 20.0)
    return skrf.Network(f=ghz * 1e9, s=s, z0=2.0 * R0, f_unit="Hz")


def device(lane: Lane) -> DeviceModel:
    """Die and package of one end, both scaled to the symbol rate above 106.25 GBd."""
    scale = min(1.0, FB / lane.symbol_rate_gbd)
    build = package_class_a if lane.package == "a" else package_class_b
    package = build(lane.package_line_mm)
    die = DeviceTermination(
        Cd=tuple(scale * c for c in TERMINATION.Cd),
        Ls=tuple(scale * x for x in TERMINATION.Ls),
        Cb=scale * TERMINATION.Cb,
    )
    return DeviceModel(
        termination=die, package=DevicePackage(stages=package.stages, Cp=scale * package.Cp), host=None, Rd=R0
    )


def parameters(lane: Lane, step_ghz: float) -> Any:
    """D3.3's receiver at this symbol rate, with the taps of the class and a coarse search."""
    rate, detects = lane.symbol_rate_gbd, lane.equaliser == "adc_dsp"
    before = 5 if detects else 1
    after = lane.ffe_taps - before - 1
    feedback = [0.85] + [0.15] * (lane.dfe_taps - 1) if lane.dfe_taps else []
    least = [0.0] + [-0.15] * (lane.dfe_taps - 1) if lane.dfe_taps else []
    return replace(
        com_params("KR"), fb=rate, L=lane.levels, M=32, fstep=step_ghz, T_r=0.004 * FB / rate,
        f_z=rate / 2.5, f_p1=rate / 2.5, f_p2=rate, f_LF=rate / 80, f_p3=rate / 80,
        g_DC=[-x for x in ((0.0, 5.0, 10.0, 15.0, 20.0) if detects else tuple(2.5 * k for k in range(9)))],
        g_DC2=[0.0, -3.0],
        tx_taps_min=[0.0, 0.0, -0.1, 0.0, 0.0, 0.0], tx_taps_max=[0.0] * 6, tx_taps_step=[0.0, 0.0, 0.1, 0.0, 0.0, 0.0],
        dfe_min=np.array(least), dfe_max=np.array(feedback),
        rx_taps_min=np.array([-0.7] * before + [1.0] + [-0.7] * after),
        rx_taps_max=np.array([0.7] * before + [1.0] + [0.7] * after),
        dw=before, Nfix=None, Nwg=0, Nwf=0, mlsd=detects, N_qb=lane.quantiser_bits, local_search=2,
        ts_srch_mode="middle", ts_track=True,
    )  # fmt: skip


def run(lane: Lane) -> dict[str, float]:
    """Noise over mean signal power at the best setting, part by part, and the margin."""
    nyquist = lane.symbol_rate_gbd / 2.0
    per_m = SKIN_DB * np.sqrt(nyquist) / lane.conductor_ratio + DIELECTRIC_DB * nyquist
    heard_m = min(lane.length_m, 5.0 / per_m)  # an echo of a longer cable comes back 10 dB weaker, and wraps around
    period_ns = 1.5 + 2.0 * CABLE_NS_PER_M * heard_m
    step = next((x for x in STEPS_GHZ if 1.0 / x >= period_ns), STEPS_GHZ[-1])
    ghz = np.maximum(np.arange(0.0, 2.0 * lane.symbol_rate_gbd, step), 1e-6)
    channels: dict[str, list[skrf.Network]] = {"THRU": [cable(lane, ghz)], "FEXT": [], "NEXT": []}
    if lane.crosstalk_db < NO_CROSSTALK_DB:
        channels["FEXT"] = [aggressor(lane, ghz)]
    end = device(lane)
    tool = COM(parameters(lane, step), channels, tx_device=end, rx_device=end)
    tool.n_procs = 1
    margin = tool(opt_mode=OptMode.MMSE)
    found, settings = tool.com_rslts, tool.com_params
    variance = (lane.levels + 1) / (3.0 * (lane.levels - 1))
    power = variance * (found["As"] * (lane.levels - 1) / settings.RLM) ** 2
    names = {"transmitter": "sigma_Tx", "interference": "sigma_ISI", "jitter": "sigma_J", "crosstalk": "sigma_XT",
             "receiver": "sigma_N", "quantiser": "sigma_Q"}  # fmt: skip
    share = {name: float(found[key]) ** 2 / power for name, key in names.items()}
    share["jitter"] *= 1.0 + (settings.A_DD / settings.sigma_Rj) ** 2  # the tool's sum has the random part alone
    through = abs(tool.chnls[0][1])
    decibel = {f"{name}_nsr_db": 10.0 * float(np.log10(max(value, 1e-12))) for name, value in share.items()}
    return {
        "loss_with_terminations_db": -20.0 * float(np.log10(np.interp(nyquist * 1e9, tool.freqs, through))),
        "snr_db": 20.0 * float(np.log10(settings.RLM)) - 10.0 * float(np.log10(sum(share.values()))),
        "com_db": float(found.get("COM_DFE", margin)),
        "com_mlsd_db": float(margin),
        **decibel,
    }


def main(prefix: str, seed: int, count: int) -> None:
    warnings.filterwarnings("ignore")
    generator, writer, number = np.random.default_rng(seed), None, 0
    while number < count:
        lane = draw(generator)
        try:
            found = run(lane)
        except (AssertionError, RuntimeError, ValueError, IndexError, FloatingPointError) as error:
            print(f"left aside: {lane}: {error!r:.200}", file=sys.stderr, flush=True)
            continue
        number += 1
        row = {"point": f"{prefix}{number:03d}", **lane.__dict__, **{k: f"{v:.4f}" for k, v in found.items()}}
        if writer is None:
            writer = csv.DictWriter(sys.stdout, list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
