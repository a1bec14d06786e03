"""From names and a scenario to the numbers of a bill: the one door between the price catalog and ``cost``.

Every number comes from the catalog, from the caller's counts or from an override that the scenario names. ``draws``
replaces single facts by other values, a column of them for a Monte Carlo or a tornado: an ``(s, 1)`` array makes every
column that depends on it ``(s, n)``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from codesign.catalog import Catalog, Fact
from codesign.cost.bill import CostInputs
from codesign.cost.energy import EnergyInputs
from codesign.cost.ownership import FinanceInputs
from codesign.cost.package import PackageInputs, carrier_area_mm2
from codesign.cost.silicon import DieInputs
from codesign.cost.system import HostInputs, NetworkInputs, switch_price_usd
from codesign.errors import CatalogError, nearest
from codesign.units import Numeric

Names = str | Sequence[str]
FactKey = tuple[str, str, str]
Draws = Mapping[FactKey, Numeric]


@dataclass(frozen=True)
class Scenario:
    """How to count: ``owner`` or ``market``, the year whose prices hold, and what is set by hand.

    ``overrides`` are facts of ``scenarios.yaml`` by name, such as ``electricity_usd_per_kwh``.
    """

    name: str = "owner"
    year: int = 2026
    overrides: Mapping[str, Numeric] = field(default_factory=dict)


@dataclass(frozen=True)
class NetworkChoice:
    """One network: what it is made of, and how many parts and of what size per accelerator."""

    switch: Names = "no_switch"
    nic: Names = "no_nic"
    medium: Names = "no_cable"
    switches_count: Numeric = 0.0
    switch_gbps: Numeric = 0.0
    nics_count: Numeric = 0.0
    nic_gbps: Numeric = 0.0
    cables_count: Numeric = 0.0
    link_gbps: Numeric = 0.0
    length_m: Numeric = 0.0
    transceivers_count: Numeric = 0.0


@dataclass(frozen=True)
class CostChoice:
    """What a bill needs to know of a design, per accelerator: names from the catalog and plain numbers.

    ``carrier_mm2`` of None is computed from what stands on it; ``critical_frac`` and ``spare_cores_count`` of None
    are the catalog's. An I/O die has no cores to spare.
    """

    node: Names
    package: Names
    memory: Names
    compute_count: Numeric
    compute_area_mm2: Numeric
    stacks_count: Numeric
    stack_gb: Numeric
    busy_w: Numeric
    idle_w: Numeric
    peak_w: Numeric
    io_node: Names | None = None
    io_count: Numeric = 0.0
    io_area_mm2: Numeric = 0.0
    compute_serdes_mm2: Numeric = 0.0
    compute_buffer_mm2: Numeric = 0.0
    io_serdes_mm2: Numeric = 0.0
    io_buffer_mm2: Numeric = 0.0
    critical_frac: Numeric | None = None
    spare_cores_count: Numeric | None = None
    io_critical_frac: Numeric = 1.0
    carrier_mm2: Numeric | None = None
    bridge_mm2: Numeric = 0.0
    serdes: Names = "serdes_112g"
    second_tier: Names = "ddr5"
    second_tier_gb: Numeric = 0.0
    host: Names = "custom_rack"
    cooling: Names = "liquid"
    scale_up: NetworkChoice = NetworkChoice()
    scale_out: NetworkChoice = NetworkChoice()
    front_end: NetworkChoice = NetworkChoice()


class _Reader:
    """Reads facts as columns, remembers which, and puts draws in their place."""

    def __init__(self, catalog: Catalog, draws: Draws) -> None:
        self.catalog, self.draws = catalog, draws
        self.seen: dict[FactKey, Fact] = {}

    def one(self, kind: str, technology: str, name: str) -> Numeric:
        fact = self.catalog.fact(kind, technology, name)
        self.seen[kind, technology, name] = fact
        return self.draws.get((kind, technology, name), fact.value)

    def column(self, kind: str, technologies: Names, name: str) -> Numeric:
        """One fact for every row; a single name stands for all rows."""
        if isinstance(technologies, str):
            return self.one(kind, technologies, name)
        known, rows = np.unique(np.asarray(technologies), return_inverse=True)
        return _spread([self.one(kind, str(technology), name) for technology in known], rows)

    def price(self, technologies: Names, year: int) -> Numeric:
        """Memory price of a year: the newest that is not after it, or the oldest there is."""
        if isinstance(technologies, str):
            return self.one("prices", technologies, self._dated(technologies, year))
        known, rows = np.unique(np.asarray(technologies), return_inverse=True)
        return _spread([self.price(str(technology), year) for technology in known], rows)

    def _dated(self, technology: str, year: int) -> str:
        facts = self.catalog.technology("prices", technology)
        dated = sorted(name for name in facts if name.endswith("_usd_per_gb"))
        if not dated:
            raise CatalogError(f"catalog prices.yaml: {technology}: has no price per GB; it is not a memory")
        past = [name for name in dated if int(name[1:5]) <= year]
        return past[-1] if past else dated[0]


def _spread(values: list[Numeric], rows: np.ndarray) -> Numeric:
    """Values of the known names, one per row, draws first."""
    shape = np.broadcast_shapes(*(np.shape(value) or (1,) for value in values))
    ends = [np.broadcast_to(np.asarray(value, dtype=float), shape) for value in values]
    return np.concatenate(ends, axis=-1)[..., rows]


def cost_inputs(catalog: Catalog, choice: CostChoice, scenario: Scenario, draws: Draws | None = None) -> CostInputs:
    """The numbers of a bill.

    Raises:
        CatalogError: a name or an override is not in the catalog; the message names the nearest.
    """
    return _bound(_Reader(catalog, draws or {}), choice, scenario)


def purchased_inputs(
    catalog: Catalog, capital_usd: Numeric, busy_w: Numeric, scenario: Scenario, draws: Draws | None = None
) -> CostInputs:
    """The bill of a machine that is bought whole: one price per accelerator, network included, and its power.

    Raises:
        CatalogError: an override is not in the catalog.
    """
    reader = _Reader(catalog, draws or {})
    said = _scenario(reader, scenario)
    line = {name: reader.one("wafers", "line_300mm", name) for name in _LINE}
    no_die = DieInputs(
        die_area_mm2=0.0, wafer_usd=0.0, defects_per_mm2=0.0, critical_frac=1.0, spare_cores_count=0.0, **line
    )
    nothing = NetworkInputs(*(0.0 for _ in NetworkInputs.__slots__))
    parts = {name: 0.0 for name in PackageInputs.__slots__} | {
        "bond_yield_frac": 1.0, "final_yield_frac": 1.0, "carrier_area_mm2": 1.0, "carrier_radius_mm": 145.0,
        "carrier_scribe_mm": 1.0, "carrier_clustering_count": 1.0,
    }  # fmt: skip
    rest = {name: 0.0 for name in ("compute_serdes_mm2", "compute_buffer_mm2", "io_serdes_mm2", "io_buffer_mm2")}
    return CostInputs(
        compute=no_die,
        io=no_die,
        package=PackageInputs(**parts),
        scale_up=nothing,
        scale_out=nothing,
        front_end=nothing,
        host=HostInputs(capital_usd, 0.0, 0.0, busy_w, 0.0, 0.0),
        energy=EnergyInputs(busy_w=busy_w, idle_w=busy_w, peak_w=busy_w, **{name: said[name] for name in _ENERGY}),
        finance=FinanceInputs(**{name: said[name] for name in FinanceInputs.__slots__}),
        design_usd=0.0,
        masks_usd=0.0,
        licences_usd=0.0,
        volume_count=said["volume_count"],
        **rest,
    )


def drawn(facts: Mapping[FactKey, Fact], count: int, seed: int) -> dict[FactKey, Numeric]:
    """Draws of every fact between its low and its high, triangular around its value, as ``(s, 1)`` columns.

    Each fact has its own stream, so two designs that share a fact see the same draws of it and their difference is
    theirs alone.
    """
    draws: dict[FactKey, Numeric] = {}
    for key, fact in facts.items():
        if fact.high > fact.low:
            stream = np.random.default_rng([seed, *".".join(key).encode()])
            draws[key] = stream.triangular(fact.low, fact.value, fact.high, (count, 1))
    return draws


def facts_read(catalog: Catalog, choice: CostChoice, scenario: Scenario) -> dict[FactKey, Fact]:
    """The facts that a bill rests on, in the order in which they are read."""
    reader = _Reader(catalog, {})
    _bound(reader, choice, scenario)
    return reader.seen


def _bound(reader: _Reader, choice: CostChoice, scenario: Scenario) -> CostInputs:
    said = _scenario(reader, scenario)
    io_node = choice.node if choice.io_node is None else choice.io_node
    return CostInputs(
        compute=_die(reader, choice.node, choice.compute_area_mm2, choice.critical_frac, choice.spare_cores_count),
        io=_die(reader, io_node, choice.io_area_mm2, choice.io_critical_frac, 0.0),
        package=_package(reader, choice, scenario.year),
        scale_up=_network(reader, choice.scale_up),
        scale_out=_network(reader, choice.scale_out),
        front_end=_network(reader, choice.front_end),
        host=HostInputs(
            host_usd=reader.column("systems", choice.host, "host_usd"),
            rack_usd=reader.column("systems", choice.host, "rack_usd"),
            cooling_usd_per_w=reader.column("facilities", choice.cooling, "cooling_usd_per_w"),
            peak_w=choice.peak_w,
            second_tier_gb=choice.second_tier_gb,
            second_tier_usd_per_gb=reader.price(choice.second_tier, scenario.year),
        ),
        energy=EnergyInputs(
            busy_w=choice.busy_w,
            idle_w=choice.idle_w,
            peak_w=choice.peak_w,
            **{name: said[name] for name in _ENERGY},
        ),
        finance=FinanceInputs(**{name: said[name] for name in FinanceInputs.__slots__}),
        compute_serdes_mm2=choice.compute_serdes_mm2,
        compute_buffer_mm2=choice.compute_buffer_mm2,
        io_serdes_mm2=choice.io_serdes_mm2,
        io_buffer_mm2=choice.io_buffer_mm2,
        volume_count=said["volume_count"],
        **_nre(reader, choice, io_node),
    )


_ENERGY = ("utilisation_frac", "psu_efficiency_frac", "pue_ratio", "electricity_usd_per_kwh")


def _scenario(reader: _Reader, scenario: Scenario) -> dict[str, Numeric]:
    known = reader.catalog.technology("scenarios", scenario.name)
    for name in scenario.overrides:
        if name not in known:
            raise CatalogError(f"scenario {scenario.name}: cannot set {name!r}{nearest(name, known)}")
    return {
        name: scenario.overrides[name] if name in scenario.overrides else reader.one("scenarios", scenario.name, name)
        for name in known
    }


def _die(
    reader: _Reader, node: Names, area_mm2: Numeric, critical: Numeric | None, spares: Numeric | None
) -> DieInputs:
    line = {name: reader.one("wafers", "line_300mm", name) for name in _LINE}
    return DieInputs(
        die_area_mm2=area_mm2,
        wafer_usd=reader.column("wafers", node, "wafer_usd"),
        defects_per_mm2=reader.column("wafers", node, "defects_per_cm2") / 100.0,
        critical_frac=reader.one("wafers", "line_300mm", "critical_frac") if critical is None else critical,
        spare_cores_count=reader.one("wafers", "line_300mm", "spare_cores_count") if spares is None else spares,
        **line,
    )


_LINE = ("usable_radius_mm", "scribe_mm", "clustering_count", "test_frac", "coverage_frac")


def _package(reader: _Reader, choice: CostChoice, year: int) -> PackageInputs:
    kind = choice.package

    def of(name: str) -> Numeric:
        return reader.column("packages", kind, name)

    area_mm2 = choice.carrier_mm2
    if area_mm2 is None:
        dies_mm2 = choice.compute_count * choice.compute_area_mm2 + choice.io_count * choice.io_area_mm2
        stacks_mm2 = choice.stacks_count * reader.one("packages", "hbm_stack", "footprint_mm2")
        area_mm2 = carrier_area_mm2(dies_mm2, stacks_mm2, of("carrier_area_ratio"))
    return PackageInputs(
        compute_count=choice.compute_count,
        io_count=choice.io_count,
        stacks_count=choice.stacks_count,
        stack_usd=choice.stack_gb * reader.price(choice.memory, year),
        carrier_area_mm2=area_mm2,
        carrier_defects_per_mm2=of("carrier_defects_per_cm2") / 100.0,
        bridge_area_mm2=choice.bridge_mm2,
        substrate_area_mm2=area_mm2 * of("substrate_area_ratio"),
        **{name: of(name) for name in _PACKAGE},
    )


_PACKAGE = (
    "carrier_wafer_usd", "carrier_radius_mm", "carrier_scribe_mm", "carrier_clustering_count", "bridge_usd_per_mm2",
    "substrate_usd_per_mm2", "attach_usd", "assembly_usd", "test_usd", "bond_yield_frac", "final_yield_frac",
)  # fmt: skip


def _network(reader: _Reader, choice: NetworkChoice) -> NetworkInputs:
    switch_rate = reader.column("switches", choice.switch, "price_usd") / reader.column(
        "switches", choice.switch, "capacity_gbps"
    )
    nic_rate = reader.column("nics", choice.nic, "price_usd") / reader.column("nics", choice.nic, "rate_gbps")
    scale = choice.link_gbps / reader.column("prices", choice.medium, "cable_gbps")
    module = choice.link_gbps / reader.column("prices", choice.medium, "transceiver_gbps")
    return NetworkInputs(
        switches_count=choice.switches_count,
        switch_usd=switch_price_usd(choice.switch_gbps, switch_rate),
        nics_count=choice.nics_count,
        nic_usd=switch_price_usd(choice.nic_gbps, nic_rate),
        cables_count=choice.cables_count,
        cable_usd=reader.column("prices", choice.medium, "cable_usd") * scale,
        cable_usd_per_m=reader.column("prices", choice.medium, "cable_usd_per_m") * scale,
        length_m=choice.length_m,
        transceivers_count=choice.transceivers_count,
        transceiver_usd=reader.column("prices", choice.medium, "transceiver_usd") * module,
    )


def _nre(reader: _Reader, choice: CostChoice, io_node: Names) -> dict[str, Numeric]:
    """Design by the share of area on each node, one mask set per kind of die, one licence per kind of IP."""
    whole_mm2 = np.maximum(choice.compute_area_mm2 + choice.io_area_mm2, 1e-9)
    has_io = np.where(np.asarray(choice.io_count) > 0.0, 1.0, 0.0)
    has_stacks = np.where(np.asarray(choice.stacks_count) > 0.0, 1.0, 0.0)
    design = reader.column("wafers", choice.node, "design_usd") * (choice.compute_area_mm2 / whole_mm2)
    io_design = reader.column("wafers", io_node, "design_usd") * (choice.io_area_mm2 / whole_mm2)
    masks = reader.column("wafers", choice.node, "masks_usd")
    serdes = reader.column("prices", choice.serdes, "licence_usd")
    return {
        "design_usd": design + io_design,
        "masks_usd": masks + reader.column("wafers", io_node, "masks_usd") * has_io,
        "licences_usd": serdes + reader.one("prices", "memory_phy", "licence_usd") * has_stacks,
    }
