"""The hardware of a batch of candidates: links, memory, chip, power and fabric, each beside that of its base platform.

A designed machine borrows what was measured on its platform's accelerator (kernel shares, library start times) and
moves it by the ratio of its own model to the platform's: the absolute error of the model cancels where nothing changed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from codesign.candidates import Candidates, platform_candidates
from codesign.catalog import Catalog
from codesign.catalog.platforms import load_platform
from codesign.chips import ChipChoice, chip_inputs, gemm_activity, power_inputs
from codesign.columns import S, remade
from codesign.fabrics import fabric_of
from codesign.links import Choice, link_inputs, rack_cable_m
from codesign.machines import attention_engine, gemm_engine, mla_engine
from codesign.memories import MemoryChoice, column, memory_constants, memory_inputs
from codesign.model.chip.chain import Chip, ChipInputs, chip
from codesign.model.chip.power import Activity, PowerInputs, package_w, throttled_clock_frac
from codesign.model.fabric.collectives import Fabric
from codesign.model.fabric.tier import Exchange, Tier
from codesign.model.kernels.attention import AttentionEngine
from codesign.model.kernels.gemm import GemmEngine
from codesign.model.kernels.mla import MlaEngine
from codesign.model.link.chain import Link, link
from codesign.model.memory.chain import MemoryInputs, MemorySystem, memory_system
from codesign.model.workload.machine import Machine
from codesign.model.workload.serving_inputs import ServingKernels
from codesign.networks import Networks, networks
from codesign.serving_formats import Formats, serving_kernels
from codesign.units import Array, Numeric, bytes_from_gb

LEAST_RATE_RATIO = 1e-6  # a link that loses everything still gives a finite time, and breaks its rule
LINK_WORDS = ("modulation", "equaliser", "fec", "medium", "protocol", "retry")
LINK_NUMBERS = (
    "lane_rate_gbps", "payload_bytes", "receive_buffer_bytes", "virtual_channels_count", "replay_buffer_bytes",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The chains of one batch, platform or candidate alike."""

    up: Link
    out: Link
    up_ports_count: Array
    out_ports_count: Array
    memory: MemorySystem
    chip: Chip
    power: PowerInputs
    clock_frac: Array  # clock a long 16-bit product leaves under the power cap, over nominal
    product_w: Array  # power of that product at the nominal clock, caps aside
    watts_ratio: Array  # rated over modelled power of the platform
    second_tier_bytes: Array


@dataclass(frozen=True, slots=True, eq=False)
class Hardware:
    """A batch of machines as workloads, cost and rules read them."""

    candidates: Candidates
    catalog: Catalog
    own: Parts
    base: Parts  # of each row's platform
    nets: Networks
    base_nets: Networks
    host_ratio: Numeric = 1.0  # host time over that of the hosts software was measured on

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def second_tier_bytes(self) -> Array:
        """Capacity behind the first tier."""
        return self.own.second_tier_bytes

    def ratio(self, read: Callable[[Parts], Numeric]) -> Array:
        """A number of the candidate over that of its platform."""
        own, base = np.asarray(read(self.own), dtype=np.float64), np.asarray(read(self.base), dtype=np.float64)
        return np.broadcast_to(own / base, (len(self),))

    @property
    def memory_ratio(self) -> Array:
        """Memory peak over the platform's."""
        return self.ratio(lambda p: p.memory.peak_rate_gbps)

    def _moved(self, engine: S, peak: Array, share: Callable[[MemorySystem], Numeric]) -> S:
        """An engine measured on the platform's accelerator, moved to the candidate's peaks and memory."""
        known = {f.name: getattr(engine, f.name) for f in fields(engine) if f.init}
        moved: dict[str, Any] = {}
        if "peak_gflops" in known:
            moved["peak_gflops"] = known["peak_gflops"] * peak
        if "memory_rate_gbps" in known:
            moved["memory_rate_gbps"] = known["memory_rate_gbps"] * self.memory_ratio
        if "memory_frac" in known:
            moved["memory_frac"] = np.minimum(known["memory_frac"] * self.ratio(lambda p: share(p.memory)), 1.0)
        return replace(engine, **moved)

    def serving_kernels(self, formats: Sequence[Formats]) -> ServingKernels:
        """Kernels of a serving engine on the platform's accelerator, moved to the candidate."""
        measured = serving_kernels(self.catalog, self.candidates.accelerator, formats)
        return replace(
            measured,
            projection=self._moved(measured.projection, self._peaks([f.projection for f in formats]), _weights),
            dense=self._moved(measured.dense, self._peaks([f.dense for f in formats]), _weights),
            expert=self._moved(measured.expert, self._peaks([f.expert for f in formats]), _weights),
            head=self._moved(measured.head, self._peak("bf16"), _weights),
            attention=self._moved(measured.attention, self._peak("bf16"), _cache),
            latent_attention=self._moved(measured.latent_attention, self._peak("bf16"), _cache),
            machine=self.machine(1.0, 0.0),
        )

    def _peaks(self, dtypes: Sequence[str]) -> Array:
        """Peaks by row, each in its own number format."""
        columns = {dtype: self._peak(dtype) for dtype in dict.fromkeys(dtypes)}
        return np.array([columns[dtype][i] for i, dtype in enumerate(dtypes)])

    def _peak(self, dtype: str) -> Array:
        word = {"fp16": "bf16", "mxfp8": "fp8", "fp8_block": "fp8", "nvfp4": "fp4", "mxfp4": "fp4"}.get(dtype, dtype)
        name = f"{word}_peak_gflops" if word in ("bf16", "fp8", "fp4", "int8") else "bf16_peak_gflops"
        return self.ratio(lambda p: getattr(p.chip, name))

    def gemm(self, dtype: str) -> GemmEngine:
        """Products in one number format."""
        engine = gemm_engine(self.catalog, self.candidates.accelerator, [dtype] * len(self))
        return self._moved(engine, self._peak(dtype), _weights)

    def attention(self, dtype: str, cache: str | None = None) -> AttentionEngine:
        """The attention core; cache reads follow the memory's share on runs of one block."""
        cached = None if cache is None else [cache] * len(self)
        engine = attention_engine(self.catalog, self.candidates.accelerator, [dtype] * len(self), cached)
        return self._moved(engine, self._peak(dtype), _cache)

    def latent_attention(self, dtype: str, cache: str | None = None) -> MlaEngine:
        """The attention core over a latent cache."""
        cached = None if cache is None else [cache] * len(self)
        engine = mla_engine(self.catalog, self.candidates.accelerator, [dtype] * len(self), cached)
        return self._moved(engine, self._peak(dtype), _cache)

    def machine(self, accelerators_count: float, launch_ns: Numeric) -> Machine:
        """Memory, second tier and clock."""
        memory = self.own.memory
        reserved = bytes_from_gb(self.catalog.constant("training", "stated", "reserved_gb"))
        return Machine(
            accelerators_count=accelerators_count,
            memory_bytes=memory.capacity_bytes,
            memory_rate_gbps=memory.peak_rate_gbps,
            memory_frac=memory.activation_frac,
            reserved_bytes=reserved,
            second_tier_bytes=self.own.second_tier_bytes,
            second_tier_rate_gbps=np.maximum(np.asarray(memory.second_rate_gbps), 1e-3),
            launch_ns=launch_ns,
            clock_frac=self.own.clock_frac / self.base.clock_frac,
        )

    @property
    def fabric(self) -> Fabric:
        """Collectives as a training library runs them."""
        return self._fabric("nccl", "nccl")

    @property
    def serving_fabric(self) -> Fabric:
        """Collectives as a serving engine runs them: its low-latency kernels below the library's sizes."""
        return self._fabric("trtllm", "nvlinktwosided")

    def _fabric(self, library: str, exchange: str) -> Fabric:
        domain = self.candidates.numbers("scale_up_domain_count")
        accelerators = self.candidates.accelerator
        fabric = fabric_of(self.catalog, accelerators, library=library, exchange=exchange, domain_count=list(domain))
        up_rate = self.ratio(lambda p: p.up.goodput_gbps * p.up_ports_count)
        out_rate = self.ratio(lambda p: p.out.goodput_gbps * p.out_ports_count)
        up_delta = _delta_ns(self.own.up, self.base.up)
        reduces = np.array([word == "in_network" for word in self.candidates.words("scale_up_reduction")], dtype=float)
        crowded = self.nets.exchange_ratio / self._measured_exchange_ratio
        permutation = self.nets.out.permutation_ratio / self.base_nets.out.permutation_ratio
        all_to_all = self.nets.out.all_to_all_ratio / self.base_nets.out.all_to_all_ratio
        return replace(
            fabric,
            scale_up=replace(
                _moved_tier(fabric.scale_up, up_rate, up_delta),
                domain_count=domain,
                reduction_flag=reduces * (1.0 - self._direct),
                exchange_contention_ratio=fabric.scale_up.exchange_contention_ratio * crowded,
            ),
            scale_out=replace(
                _moved_tier(fabric.scale_out, out_rate, _delta_ns(self.own.out, self.base.out)),
                contention_ratio=permutation,
                exchange_contention_ratio=fabric.scale_out.exchange_contention_ratio * all_to_all / permutation,
            ),
            dispatch=_moved_exchange(fabric.dispatch, up_rate, up_delta),
            combine=_moved_exchange(fabric.combine, up_rate, up_delta),
        )

    @property
    def _measured_exchange_ratio(self) -> Array:
        """Contention of the network that exchanges were measured on: the platform's own, or a switch for a torus.

        No collective of a torus was measured; its constants are borrowed from machines with switches.
        """
        kinds = {name: load_platform(name).parameters["scale_up_topology"].value for name in set(self.platforms)}
        torus = np.array(["torus" in str(kinds[name]) for name in self.platforms])
        return np.where(torus, 1.0, self.base_nets.exchange_ratio)

    @property
    def platforms(self) -> tuple[str, ...]:
        """Platform of every row."""
        return self.candidates.platform

    def length_m(self, prefix: str) -> Array:
        """Length of one cable of a network."""
        length = link_choices(self.candidates, self.catalog, prefix)["length_m"]
        return np.asarray(length, dtype=np.float64)

    @property
    def _direct(self) -> Array:
        """1 where accelerators are wired to each other, so that no switch can reduce."""
        return np.array([word == "no_switch" for word in self.nets.up_switch], dtype=np.float64)

    def straggler_ratio(self, ranks_count: float) -> Numeric:
        """Expected slowest rank over the mean: a loss per doubling of the ranks (calibration/training.yaml)."""
        loss = self.catalog.constant("training", "stated", "straggler_frac")
        return 1.0 + loss * float(np.log2(max(ranks_count, 1.0)))


def _weights(memory: MemorySystem) -> Numeric:
    return memory.weights_frac


def _cache(memory: MemorySystem) -> Numeric:
    return memory.kv_frac


def _moved_tier(tier: Tier, rate_ratio: Array, delta_ns: Array) -> Tier:
    """A tier of the platform with the candidate's rate and, at every message start, its extra latency."""
    alive = np.maximum(rate_ratio, LEAST_RATE_RATIO)
    return replace(
        tier,
        rate_gbps=tier.rate_gbps * alive,
        fast_rate_gbps=tier.fast_rate_gbps * alive,
        hop_ns=np.maximum(tier.hop_ns + delta_ns, 1.0),
        launch_ns=np.maximum(tier.launch_ns + delta_ns, 1.0),
        fast_launch_ns=np.maximum(tier.fast_launch_ns + delta_ns, 1.0),
    )


def _moved_exchange(kernel: Exchange, rate_ratio: Array, delta_ns: Array) -> Exchange:
    """An expert exchange kernel tuned for the candidate's links: its copies keep their share of the line."""
    return replace(
        kernel,
        rate_gbps=kernel.rate_gbps * np.maximum(rate_ratio, LEAST_RATE_RATIO),
        floor_ns=np.maximum(kernel.floor_ns + delta_ns, 1.0),
    )


def _delta_ns(own: Link, base: Link) -> Array:
    """Extra one-way latency of a link over the platform's, mean retries included."""
    extra: Array = np.asarray(own.coding.base_ns + own.transfer.retry_mean_ns) - np.asarray(
        base.coding.base_ns + base.transfer.retry_mean_ns
    )
    return extra


def hardware(candidates: Candidates, catalog: Catalog, cluster_count: float) -> Hardware:
    """Chains and networks of a batch and of its platforms, the networks sized for one job."""
    names = tuple(dict.fromkeys(candidates.platform))
    rows = np.array([names.index(name) for name in candidates.platform], dtype=np.intp)
    platforms = platform_candidates(names)
    parts = _platform_parts(names, catalog)
    base_nets = _networks_of(platforms, parts, catalog, cluster_count).rows(rows)
    base = picked(parts, rows)
    own = parts_of(candidates, catalog, base.watts_ratio)
    nets = _networks_of(candidates, own, catalog, cluster_count)
    return Hardware(candidates, catalog, own, base, nets, base_nets)


def _networks_of(candidates: Candidates, parts: Parts, catalog: Catalog, cluster_count: float) -> Networks:
    port_gbps = np.broadcast_to(np.asarray(parts.up.coding.raw_rate_gbps, dtype=np.float64), (len(candidates),))
    return networks(candidates, catalog, parts.up_ports_count, port_gbps, cluster_count)


def product_load(catalog: Catalog, dies: Chip, memory: MemorySystem, up: Link, up_ports_count: Numeric) -> Activity:
    """The long product power limits are set on, its scale-up ports at work both ways."""
    return gemm_activity(catalog, dies, memory, up.coding.raw_rate_gbps * up_ports_count * 2.0)


def parts_of(candidates: Candidates, catalog: Catalog, watts_ratio: Numeric = 1.0) -> Parts:
    """Links first, because the chip has to carry them; then memory, dies, power and the clock it leaves.

    Args:
        candidates: The batch.
        catalog: Facts.
        watts_ratio: What the platform is rated for over what the power model says it draws in a long product.
    """
    count = len(candidates)
    up = link(link_inputs(catalog, link_choices(candidates, catalog, "scale_up")))
    out = link(link_inputs(catalog, link_choices(candidates, catalog, "scale_out")))
    up_ports, out_ports = up_ports_count(candidates), out_ports_count(candidates)
    devices = memory_inputs(catalog, memory_choice(candidates, catalog))
    memory = memory_system(devices, memory_constants(catalog))
    choice = chip_choice(candidates, up, out, up_ports, out_ports, devices)
    dies = chip(chip_inputs(catalog, choice))
    power = _rated(power_inputs(catalog, choice, dies, memory), watts_ratio)
    load = product_load(catalog, dies, memory, up, up_ports)
    clock = throttled_clock_frac(power, load)
    return Parts(
        up=up,
        out=out,
        up_ports_count=up_ports,
        out_ports_count=out_ports,
        memory=memory,
        chip=dies,
        power=power,
        clock_frac=np.broadcast_to(np.asarray(clock), (count,)),
        product_w=np.broadcast_to(np.asarray(package_w(power, load, 1.0)), (count,)),
        watts_ratio=np.broadcast_to(np.asarray(watts_ratio, dtype=np.float64), (count,)),
        second_tier_bytes=np.broadcast_to(np.asarray(memory.second_bytes), (count,)),
    )


def chip_inputs_of(candidates: Candidates, parts: Parts, catalog: Catalog) -> ChipInputs:
    """What the chip of a batch was made from, for drawing it."""
    devices = memory_inputs(catalog, memory_choice(candidates, catalog))
    ports = parts.up_ports_count, parts.out_ports_count
    return chip_inputs(catalog, chip_choice(candidates, parts.up, parts.out, *ports, devices))


def _rated(power: PowerInputs, watts_ratio: Numeric) -> PowerInputs:
    """Every watt scaled alike: a platform draws its rated power in a long product, as its maker tests it."""
    spent = ("_pj_per_flop", "_pj_per_bit", "_pj_per_mm2", "_w_per_mm2", "_idle_w")
    return replace(
        power, **{f.name: getattr(power, f.name) * watts_ratio for f in fields(power) if f.name.endswith(spent)}
    )


_PLATFORM_PARTS: dict[tuple[tuple[str, ...], str], Parts] = {}


def _platform_parts(names: tuple[str, ...], catalog: Catalog) -> Parts:
    """Chains of some platforms, worked out once per catalog."""
    key = (names, catalog.digest)
    if key not in _PLATFORM_PARTS:
        platforms = platform_candidates(names)
        modelled = parts_of(platforms, catalog)
        _PLATFORM_PARTS[key] = parts_of(platforms, catalog, modelled.power.power_cap_w / modelled.product_w)
    return _PLATFORM_PARTS[key]


def picked(struct: S, rows: Any) -> S:
    """Rows of nested structs of columns; numbers and one-row columns stay."""
    return remade(struct, lambda value: value[rows] if np.ndim(value) == 1 and len(value) > 1 else value)


def up_ports_count(candidates: Candidates) -> Array:
    """Whole ports the scale-up lanes make; lanes that fill none are not built."""
    return np.floor(candidates.numbers("scale_up_lanes_count") / up_port_lanes_count(candidates))


def up_port_lanes_count(candidates: Candidates) -> Array:
    """Lanes of a scale-up port, no more than the accelerator has."""
    return np.minimum(candidates.numbers("scale_up_port_lanes_count"), candidates.numbers("scale_up_lanes_count"))


def out_ports_count(candidates: Candidates) -> Array:
    """Scale-out ports per accelerator: one NIC."""
    return np.ones(len(candidates))


def link_choices(candidates: Candidates, catalog: Catalog, prefix: str) -> Mapping[str, Choice]:
    """What the link model needs of one of the two networks."""
    choices: dict[str, Choice] = {name: candidates.words(f"{prefix}_{name}") for name in LINK_WORDS}
    choices |= {name: candidates.numbers(f"{prefix}_{name}") for name in LINK_NUMBERS}
    spare = candidates.numbers(f"{prefix}_spare_lanes_count")
    if prefix == "scale_up":
        choices["lanes_count"] = up_port_lanes_count(candidates)
        choices["spare_lanes_count"] = np.floor(spare / up_ports_count(candidates))
        choices["length_m"] = scale_up_length_m(candidates, catalog)
    else:
        nic = candidates.numbers("nic_rate_gbps")
        lanes = np.maximum(np.ceil(nic / candidates.numbers("scale_out_lane_rate_gbps")), 1.0)
        choices["lanes_count"], choices["lane_rate_gbps"] = lanes, nic / lanes  # a port is no faster than its card
        choices["spare_lanes_count"] = spare
        choices["hops_count"] = 2.0 * candidates.numbers("scale_out_tiers_count") - 1.0
        choices["length_m"] = np.full(len(candidates), catalog.value("link_defaults", "link", "scale_out_m"))
    choices["random_frac"] = np.full(len(candidates), catalog.value("link_defaults", "link", f"{prefix}_random_frac"))
    apart = candidates.numbers("io_dies_count") > 0.0
    choices["die_to_die"] = np.where(apart, np.array(candidates.words("die_to_die")), "none")
    choices["node"] = candidates.words("node")
    return choices


def scale_up_length_m(candidates: Candidates, catalog: Catalog) -> Array:
    """Longest scale-up link: on one board in a node, to the next rack in a torus, else by the racks of the domain."""
    domain = candidates.numbers("scale_up_domain_count")
    torus = np.array(["torus" in word for word in candidates.words("scale_up_topology")])
    board = {n: catalog.value("link_defaults", "link", n) for n in ("board_accelerators_count", "on_board_m")}
    rack = catalog.value("link_defaults", "link", "rack_accelerators_count")
    length = rack_cable_m(catalog, np.where(torus, np.minimum(domain, 2.0 * rack), domain))
    return np.where(domain <= board["board_accelerators_count"], board["on_board_m"], length)


def memory_choice(candidates: Candidates, catalog: Catalog) -> MemoryChoice:
    """What the memory model needs."""
    kinds = candidates.words("second_tier_kind")
    named = [kind if kind != "none" else "ddr5" for kind in kinds]
    each = np.array([catalog.value("memory", k, "die_gb") * catalog.value("memory", k, "height_count") for k in named])
    return MemoryChoice(
        kind=candidates.words("memory_kind"),
        stacks_count=candidates.numbers("memory_stacks_count"),
        pin_rate_gbps=candidates.numbers("memory_pin_rate_gbps"),
        height_count=candidates.numbers("memory_height_count"),
        write_queue_count=candidates.numbers("memory_write_queue_count"),
        outstanding_bytes=candidates.numbers("memory_outstanding_bytes"),
        reserved_frac=column(catalog, "packages_geometry", candidates.chip, "memory_reserved_frac"),
        second_kind=kinds,
        second_modules_count=np.ceil(candidates.numbers("second_tier_gb") / each),
    )


def chip_choice(
    candidates: Candidates, up: Link, out: Link, up_ports: Array, out_ports: Array, devices: MemoryInputs
) -> ChipChoice:
    """What the chip model needs, links entering as plain numbers."""
    area = up.silicon.die_area_mm2 * up_ports + out.silicon.die_area_mm2 * out_ports
    edge = up.silicon.edge_mm * up_ports + out.silicon.edge_mm * out_ports
    buffers = (
        candidates.numbers("scale_up_receive_buffer_bytes") + candidates.numbers("scale_up_replay_buffer_bytes")
    ) * up_ports + (
        candidates.numbers("scale_out_receive_buffer_bytes") + candidates.numbers("scale_out_replay_buffer_bytes")
    ) * out_ports
    buffer_mm2 = up.silicon.buffer_area_mm2 * up_ports + out.silicon.buffer_area_mm2 * out_ports
    return ChipChoice(
        base=candidates.chip,
        memory_kind=candidates.words("memory_kind"),
        memory_stacks_count=candidates.numbers("memory_stacks_count"),
        node=candidates.words("node"),
        die_to_die=candidates.words("die_to_die"),
        cooling=candidates.words("cooling"),
        compute_scale_frac=candidates.numbers("compute_scale_frac"),
        compute_dies_count=candidates.numbers("compute_dies_count"),
        io_dies_count=candidates.numbers("io_dies_count"),
        shared_bytes=candidates.numbers("sram_mb") * 1e6,
        buffer_bytes=buffers,
        link_mm2=area - buffer_mm2,
        link_edge_mm=edge,
        scale_up_pj_per_bit=up.silicon.serdes_pj_per_bit,
        scale_out_pj_per_bit=out.silicon.serdes_pj_per_bit,
        power_cap_w=candidates.numbers("power_cap_w"),
        second_phy_mm2=devices.second_phy_mm2,
        second_edge_mm=devices.second_edge_mm,
    )
