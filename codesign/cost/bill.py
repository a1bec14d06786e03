"""The bill of one accelerator and of one of its hours, item by item; the items add up to the total."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.cost.energy import Energy, EnergyInputs, energy
from codesign.cost.ownership import FinanceInputs, capital_recovery_frac, capital_usd_per_h
from codesign.cost.package import Package, PackageInputs, package
from codesign.cost.silicon import DieInputs, die, nre_share_usd
from codesign.cost.system import HostInputs, Network, NetworkInputs, host_and_rack_usd, marked_up_usd, network
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class CostInputs:
    """Everything a bill is made from, per accelerator; numbers only."""

    compute: DieInputs
    io: DieInputs
    package: PackageInputs
    scale_up: NetworkInputs
    scale_out: NetworkInputs
    front_end: NetworkInputs
    host: HostInputs
    energy: EnergyInputs
    finance: FinanceInputs
    compute_serdes_mm2: Numeric
    compute_buffer_mm2: Numeric
    io_serdes_mm2: Numeric
    io_buffer_mm2: Numeric
    design_usd: Numeric
    masks_usd: Numeric
    licences_usd: Numeric
    volume_count: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Capital:
    """What one accelerator costs to buy, with its share of everything it needs; spares are inside each item."""

    die_usd: Numeric
    serdes_usd: Numeric
    buffer_usd: Numeric
    memory_usd: Numeric
    package_usd: Numeric
    nre_usd: Numeric
    vendor_margin_usd: Numeric
    links_usd: Numeric
    switches_usd: Numeric
    nics_usd: Numeric
    host_usd: Numeric
    facility_usd: Numeric
    total_usd: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Hourly:
    """What one hour of one accelerator costs, sold or not."""

    die_usd_per_h: Numeric
    serdes_usd_per_h: Numeric
    buffer_usd_per_h: Numeric
    memory_usd_per_h: Numeric
    package_usd_per_h: Numeric
    nre_usd_per_h: Numeric
    vendor_margin_usd_per_h: Numeric
    links_usd_per_h: Numeric
    switches_usd_per_h: Numeric
    nics_usd_per_h: Numeric
    host_usd_per_h: Numeric
    facility_usd_per_h: Numeric
    energy_usd_per_h: Numeric
    operations_usd_per_h: Numeric
    provider_margin_usd_per_h: Numeric
    total_usd_per_h: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Bill:
    """One accelerator: its package, what it costs to buy and what an hour of it costs."""

    package: Package
    capital: Capital
    hourly: Hourly
    energy: Energy

    def __post_init__(self) -> None:
        freeze(self)


def bill(inputs: CostInputs) -> Bill:
    """The whole bill, from wafers to an accelerator-hour.

    Args:
        inputs: Silicon, package, networks, host, power and money.

    Source:
        definition: the chains of this package in order.

    >>> round(float(bill(_example()).hourly.total_usd_per_h), 2)
    1.0
    """
    built = package(die(inputs.compute), die(inputs.io), inputs.package)
    power = energy(inputs.energy)
    capital_items = _capital(inputs, built, power)
    return Bill(built, capital_items, _hourly(inputs, capital_items, power), power)


def _capital(inputs: CostInputs, built: Package, power: Energy) -> Capital:
    finance = inputs.finance
    stock = 1.0 + finance.spares_frac
    parts = _silicon(inputs, built)
    up, out, front = network(inputs.scale_up), network(inputs.scale_out), network(inputs.front_end)
    nics_usd, links_usd, switches_usd = _networks(up, out, front)
    tier_usd = inputs.host.second_tier_gb * inputs.host.second_tier_usd_per_gb
    host_usd = host_and_rack_usd(inputs.host)
    nre_usd = nre_share_usd(inputs.design_usd, inputs.masks_usd, inputs.licences_usd, inputs.volume_count)
    vendor_usd = marked_up_usd(built.total_usd + nre_usd, finance.vendor_margin_frac)
    server_usd = built.total_usd + nre_usd + vendor_usd + host_usd + tier_usd + nics_usd
    margins_usd = vendor_usd + marked_up_usd(server_usd, finance.integrator_margin_frac)
    items = {
        "die_usd": parts[0] * stock,
        "serdes_usd": parts[1] * stock,
        "buffer_usd": parts[2] * stock,
        "memory_usd": (built.stacks_usd + tier_usd) * stock,
        "package_usd": _packaging_usd(built) * stock,
        "nre_usd": nre_usd * stock,
        "vendor_margin_usd": margins_usd * stock,
        "links_usd": links_usd * stock,
        "switches_usd": switches_usd * stock,
        "nics_usd": nics_usd * stock,
        "host_usd": host_usd * stock,
        "facility_usd": finance.facility_usd_per_w * power.provisioned_w,
    }
    return Capital(**items, total_usd=_added(*items.values()))


def _networks(up: Network, out: Network, front: Network) -> tuple[Numeric, Numeric, Numeric]:
    """NICs, links and switches of all networks."""
    return (
        up.nics_usd + out.nics_usd + front.nics_usd,
        up.links_usd + out.links_usd + front.links_usd,
        up.switches_usd + out.switches_usd + front.switches_usd,
    )


def _silicon(inputs: CostInputs, built: Package) -> tuple[Numeric, Numeric, Numeric]:
    """Cost of the dies split by area into the rest, SerDes and interface buffers; never more than the die itself."""
    on_compute = np.maximum(inputs.compute.die_area_mm2, inputs.compute_serdes_mm2 + inputs.compute_buffer_mm2)
    on_io = np.maximum(inputs.io.die_area_mm2, inputs.io_serdes_mm2 + inputs.io_buffer_mm2)
    compute_usd_per_mm2 = built.compute_usd / np.maximum(on_compute, 1e-9)
    io_usd_per_mm2 = built.io_usd / np.maximum(on_io, 1e-9)
    serdes_usd = compute_usd_per_mm2 * inputs.compute_serdes_mm2 + io_usd_per_mm2 * inputs.io_serdes_mm2
    buffer_usd = compute_usd_per_mm2 * inputs.compute_buffer_mm2 + io_usd_per_mm2 * inputs.io_buffer_mm2
    rest_usd = np.maximum(built.compute_usd + built.io_usd - serdes_usd - buffer_usd, 0.0)
    return rest_usd, serdes_usd, buffer_usd


def _packaging_usd(built: Package) -> Numeric:
    return built.carrier_usd + built.substrate_usd + built.assembly_usd + built.test_usd + built.scrap_usd


def _hourly(inputs: CostInputs, capital: Capital, power: Energy) -> Hourly:
    finance = inputs.finance
    accelerator = capital_recovery_frac(finance.interest_frac, finance.accelerator_life_years)
    fabric = capital_recovery_frac(finance.interest_frac, finance.network_life_years)
    site = capital_recovery_frac(finance.facility_interest_frac, finance.facility_life_years)
    machine_usd = capital.total_usd - capital.facility_usd
    operations = capital_usd_per_h(machine_usd, finance.maintenance_per_year) + capital_usd_per_h(
        power.provisioned_w, finance.site_usd_per_w_year
    )
    items = {
        "die_usd_per_h": capital_usd_per_h(capital.die_usd, accelerator),
        "serdes_usd_per_h": capital_usd_per_h(capital.serdes_usd, accelerator),
        "buffer_usd_per_h": capital_usd_per_h(capital.buffer_usd, accelerator),
        "memory_usd_per_h": capital_usd_per_h(capital.memory_usd, accelerator),
        "package_usd_per_h": capital_usd_per_h(capital.package_usd, accelerator),
        "nre_usd_per_h": capital_usd_per_h(capital.nre_usd, accelerator),
        "vendor_margin_usd_per_h": capital_usd_per_h(capital.vendor_margin_usd, accelerator),
        "links_usd_per_h": capital_usd_per_h(capital.links_usd, fabric),
        "switches_usd_per_h": capital_usd_per_h(capital.switches_usd, fabric),
        "nics_usd_per_h": capital_usd_per_h(capital.nics_usd, accelerator),
        "host_usd_per_h": capital_usd_per_h(capital.host_usd, accelerator),
        "facility_usd_per_h": capital_usd_per_h(capital.facility_usd, site),
        "energy_usd_per_h": power.energy_usd_per_h,
        "operations_usd_per_h": operations,
    }
    margin = marked_up_usd(_added(*items.values()), finance.provider_margin_frac)
    return Hourly(**items, provider_margin_usd_per_h=margin, total_usd_per_h=_added(*items.values(), margin))


def _added(*parts: Numeric) -> Numeric:
    """Sum in the order given, one addition at a time, so that a batch equals its rows."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _example() -> CostInputs:
    """A bare die at 1 USD/h: nothing but 8,760 USD of host over one year without interest, for the example above."""
    no_die = DieInputs(0.0, 0.0, 145.0, 0.2, 0.0, 10.0, 1.0, 0.0, 0.0, 1.0)
    no_package = PackageInputs(*(0.0,) * 4, *(100.0, 0.0, 145.0, 0.2, 0.0, 6.0), *(0.0,) * 7, *(1.0, 1.0))
    no_network = NetworkInputs(*(0.0,) * 10)
    return CostInputs(
        compute=no_die, io=no_die, package=no_package,
        scale_up=no_network, scale_out=no_network, front_end=no_network,
        host=HostInputs(8760.0, 0.0, 0.0, 0.0, 0.0, 0.0), energy=EnergyInputs(0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.1),
        finance=FinanceInputs(0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        compute_serdes_mm2=0.0, compute_buffer_mm2=0.0, io_serdes_mm2=0.0, io_buffer_mm2=0.0,
        design_usd=0.0, masks_usd=0.0, licences_usd=0.0, volume_count=1.0,
    )  # fmt: skip
