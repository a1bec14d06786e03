"""From hardware, networks and what the workloads make of them to watts and the bill."""

from dataclasses import dataclass, fields, replace

import numpy as np

from codesign.catalog import Catalog
from codesign.cost.bill import Bill, CostInputs, bill
from codesign.hardware import Hardware
from codesign.jobs import flop_per_token
from codesign.links import PRICED_AS
from codesign.metrics import WorkloadResult
from codesign.model.chip.power import Activity, allowed_w, board_w, package_w
from codesign.networks import Networks
from codesign.prices import CostChoice, Draws, NetworkChoice, Scenario, cost_inputs
from codesign.space import Scenario as SpaceScenario
from codesign.space import Serving, Training
from codesign.units import Array, Numeric

SLOWEST_FRAC = 0.02  # a package that cannot even idle under its cap still gives a finite time, and breaks its rule
#: Memories that are sold under the name of another: a mode of the same device.
SOLD_AS = {"hbm2_legacy": "hbm2"}
#: Which licence a lane rate needs (prices.yaml).
SERDES = ((128.0, "serdes_112g"), (256.0, "serdes_224g"), (1e9, "serdes_448g"))


@dataclass(frozen=True, slots=True, eq=False)
class Watts:
    """Sustained power of one accelerator: its package, and with its share of host, links and conversion."""

    package_w: Array
    board_w: Array
    idle_w: Array
    peak_w: Array


def links_w(hardware: Hardware) -> Numeric:
    """Watts of the media of all links of an accelerator, outside its package."""
    up, out = hardware.own.up, hardware.own.out
    return (
        up.silicon.medium_power_w * hardware.own.up_ports_count
        + out.silicon.medium_power_w * hardware.own.out_ports_count
    )


def fed_as(hardware: Hardware, other: Hardware) -> Hardware:
    """Machines under the caps of others, at the clock that those leave."""
    caps = {name: getattr(other.own.power, name) for name in ("power_cap_w", "cooling_cap_w")}
    power = replace(hardware.own.power, **caps)
    return replace(hardware, own=replace(hardware.own, power=power, clock_frac=other.own.clock_frac))


def activity_of(result: WorkloadResult, hardware: Hardware, work: Training | Serving) -> Activity:
    """What one workload does each second: arithmetic from its tokens, bytes from its parts of time.

    Training streams activations and states in its element-wise and optimizer parts and reads operands in its products;
    a decode step reads weights and cache once. Attention cores run in sixteen bits whatever the products run in. Links
    send idle flits where there is nothing else to send, so their transceivers draw the same all the time.
    """
    memory, own = hardware.own.memory, hardware.own
    share = {name: part / result.time_ns for name, part in result.parts_ns.items()}  # a throttled part does no work
    zero = np.zeros(len(hardware))

    def sum_of(*words: str) -> Array:
        total = zero
        for name in share:
            if any(word in name for word in words):
                total = total + share[name]
        return np.minimum(total, 1.0)

    tokens = result.tokens_per_s + result.input_tokens_per_s
    products, cores = (tokens * flop * 1e-9 for flop in flop_per_token(work))
    word = {"bf16": "bf16", "fp16": "bf16", "int8": "int8", "nvfp4": "fp4", "mxfp4": "fp4"}.get(work.precision, "fp8")
    peak_gbps = np.asarray(memory.peak_rate_gbps) * np.asarray(memory.weights_frac)
    if result.kind == "training":
        streams = sum_of("elementwise", "optimizer", "head", "recompute")
        load = hardware.catalog.value("blocks", "tdp_activity", "memory_frac")
        rate_gbps = peak_gbps * np.minimum(streams + load * sum_of("gemm", "attention"), 1.0)
    else:
        moved = result.memory_bytes["weights_bytes"] + result.memory_bytes["cache_bytes"]
        rate_gbps = np.minimum(8.0 * moved / result.time_ns, peak_gbps)
    up_gbps = 2.0 * np.asarray(own.up.coding.raw_rate_gbps) * own.up_ports_count
    out_gbps = 2.0 * np.asarray(own.out.coding.raw_rate_gbps) * own.out_ports_count
    per_flop = hardware.catalog.value("blocks", "tdp_activity", "sram_bits_per_flop_ratio")
    units = {f"{name}_gflops": products if name == word else zero for name in ("bf16", "fp8", "fp4", "int8")}
    units["bf16_gflops"] = units["bf16_gflops"] + cores
    return Activity(
        **units,
        sram_rate_gbps=per_flop * (products + cores),
        memory_rate_gbps=rate_gbps,
        second_rate_gbps=np.asarray(memory.second_rate_gbps) * sum_of("offload"),
        scale_up_rate_gbps=up_gbps,
        scale_out_rate_gbps=out_gbps,
        die_to_die_rate_gbps=np.where(np.asarray(own.chip.die_to_die_edge_mm) > 0.0, rate_gbps, 0.0),
    )


def speed_under_cap(activity: Activity, hardware: Hardware) -> Array:
    """Share of its speed that a workload keeps under the caps of power and cooling, at the clock of a long product.

    Power is what flows whatever the work (leakage, clock tree, links) plus energy per operation and byte times their
    rates, so what exceeds the cap slows the rates in proportion.
    """
    own, clock = hardware.own, hardware.own.clock_frac
    still_w = package_w(own.power, _scaled(activity, 0.0 * clock, clock), clock)
    busy_w = package_w(own.power, _scaled(activity, 1.0 + 0.0 * clock, clock), clock)
    room = (allowed_w(own.power) - still_w) / np.maximum(busy_w - still_w, 1e-9)
    return np.broadcast_to(np.clip(room, SLOWEST_FRAC, 1.0), (len(hardware),))


def _scaled(activity: Activity, speed_frac: Array, clock_frac: Array) -> Activity:
    """Work at a share of its speed; rates are given at nominal clock. Links run on whatever the work."""
    links = ("scale_up_rate_gbps", "scale_out_rate_gbps")
    rates = {f.name: getattr(activity, f.name) for f in fields(Activity)}
    return Activity(**{n: r / clock_frac * (1.0 if n in links else speed_frac) for n, r in rates.items()})


def throttled(result: WorkloadResult, hardware: Hardware, work: Training | Serving) -> WorkloadResult:
    """A workload as fast as power and cooling let it be; what they cost is a part of its time."""
    speed = speed_under_cap(activity_of(result, hardware, work), hardware)
    slower = np.where(speed < 1.0, 1.0 / speed, 1.0)
    return replace(
        result,
        time_ns=result.time_ns * slower,
        parts_ns=result.parts_ns | {"throttle_ns": result.time_ns * (slower - 1.0)},
        tokens_per_s=result.tokens_per_s / slower,
        input_tokens_per_s=result.input_tokens_per_s / slower,
        ttft_ns=result.ttft_ns * slower,
    )


def watts_of(activity: Activity, hardware: Hardware, catalog: Catalog, given_w: Numeric = 0.0) -> Watts:
    """Power under one activity, with the host's share, the media's own power and the losses of the supply.

    ``given_w`` of the caps are allowed but not provided for: they are drawn, and nothing is built for them.
    """
    own, clock = hardware.own, hardware.own.clock_frac
    buffers_w = (
        own.up.silicon.buffer_power_w * own.up_ports_count + own.out.silicon.buffer_power_w * own.out_ports_count
    )
    accessory_w = catalog.value("blocks", "supply", "accessory_w")
    drawn = package_w(own.power, _scaled(activity, 1.0 + 0.0 * clock, clock), clock)
    package = np.asarray(drawn + buffers_w, dtype=np.float64)
    still = package_w(own.power, _scaled(activity, 0.0 * clock, clock), clock)
    built_for_w = np.maximum(allowed_w(own.power) - given_w, package - given_w)

    def board(package_w: Numeric) -> Array:
        watts = board_w(package_w, accessory_w + links_w(hardware), 1.0)  # supply losses are the bill's
        return np.broadcast_to(np.asarray(watts, dtype=np.float64), (len(hardware),))

    return Watts(np.broadcast_to(package, (len(hardware),)), board(package), board(still), board(built_for_w))


def scenario_of(said: SpaceScenario) -> Scenario:
    """The price scenario of a space: the owner's or the market's, with what the space sets by hand."""
    named = {
        "electricity_usd_per_kwh": said.electricity_usd_per_kwh,
        "accelerator_life_years": said.accelerator_life_years,
        "interest_frac": said.capital_cost_frac,
        "pue_ratio": said.pue_ratio,
        "utilisation_frac": said.utilisation_frac,
        "volume_count": said.volume_count,
    }
    return Scenario(said.prices, said.year, {name: float(value) for name, value in named.items() if value is not None})


def cost_choice(hardware: Hardware, nets: Networks, watts: Watts) -> CostChoice:
    """What the bill needs to know of a batch."""
    c, own = hardware.candidates, hardware.own
    chip, up, out = own.chip, own.up, own.out
    apart = np.asarray(chip.io_die_mm2) > 0.0
    serdes = (
        np.asarray(up.silicon.serdes_area_mm2) * own.up_ports_count + out.silicon.serdes_area_mm2 * own.out_ports_count
    )
    buffers = (
        np.asarray(up.silicon.buffer_area_mm2) * own.up_ports_count + out.silicon.buffer_area_mm2 * own.out_ports_count
    )
    io_count = c.numbers("io_dies_count")
    compute_count = c.numbers("compute_dies_count")
    carriers = np.where(apart, np.maximum(io_count, 1.0), compute_count)
    serdes_each, buffers_each = serdes / carriers, buffers / carriers
    stack_gb = np.asarray(own.memory.capacity_bytes) / c.numbers("memory_stacks_count") / 1e9
    return CostChoice(
        node=c.words("node"),
        package=c.words("package"),
        memory=[SOLD_AS.get(kind, kind) for kind in c.words("memory_kind")],
        compute_count=compute_count,
        compute_area_mm2=chip.compute_die_mm2,
        io_count=io_count,
        io_area_mm2=chip.io_die_mm2,
        stacks_count=c.numbers("memory_stacks_count"),
        stack_gb=stack_gb,
        busy_w=watts.board_w,
        idle_w=watts.idle_w,
        peak_w=watts.peak_w,
        compute_serdes_mm2=np.where(apart, 0.0, serdes_each),
        compute_buffer_mm2=np.where(apart, 0.0, buffers_each),
        io_serdes_mm2=np.where(apart, serdes_each, 0.0),
        io_buffer_mm2=np.where(apart, buffers_each, 0.0),
        serdes=[next(word for top, word in SERDES if rate <= top) for rate in c.numbers("scale_up_lane_rate_gbps")],
        second_tier=[kind if kind != "none" else "ddr5" for kind in c.words("second_tier_kind")],
        second_tier_gb=own.second_tier_bytes / 1e9,
        host=c.words("host"),
        cooling=c.words("cooling"),
        scale_up=_network_choice(hardware, nets, "scale_up"),
        scale_out=_network_choice(hardware, nets, "scale_out"),
    )


def _network_choice(hardware: Hardware, nets: Networks, prefix: str) -> NetworkChoice:
    c, own = hardware.candidates, hardware.own
    up = prefix == "scale_up"
    topo, switch, radix = (
        (nets.up, nets.up_switch, nets.up_radix_count) if up else (nets.out, nets.out_switch, nets.out_radix_count)
    )
    line = own.up if up else own.out
    port_gbps = np.broadcast_to(np.asarray(line.coding.raw_rate_gbps, dtype=np.float64), (len(hardware),))
    medium = c.words(f"{prefix}_medium")
    cables = topo.access_cables_count + topo.trunk_cables_count
    optical = np.array(["optics" in word for word in medium], dtype=np.float64)
    capacity = radix * port_gbps
    nic_gbps = c.numbers("nic_rate_gbps")
    protocols = c.words("scale_out_protocol")
    return NetworkChoice(
        switch=switch,
        nic=["no_nic"] * len(hardware) if up else ["connectx_7" if r <= 400.0 else "connectx_8" for r in nic_gbps],
        medium=[PRICED_AS.get(word, word) for word in medium],
        switches_count=topo.switches_count,
        switch_gbps=np.where(np.array(switch) == "no_switch", 0.0, capacity),
        nics_count=0.0 if up else np.ones(len(protocols)),
        nic_gbps=0.0 if up else nic_gbps,
        cables_count=cables,
        link_gbps=port_gbps,
        length_m=hardware.length_m(prefix),
        transceivers_count=2.0 * cables * optical,
    )


def bill_of(
    hardware: Hardware, nets: Networks, watts: Watts, scenario: Scenario, catalog: Catalog, draws: Draws | None = None
) -> tuple[Bill, CostInputs]:
    """The bill of a batch, and the numbers it was made from."""
    inputs = cost_inputs(catalog, cost_choice(hardware, nets, watts), scenario, draws)
    return bill(inputs), inputs
