"""From a package to a rack with a network: board and host, switches, NICs, cables and optics, all per accelerator."""

from dataclasses import dataclass

from codesign.columns import freeze
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class NetworkInputs:
    """One network, per accelerator: how many of each part the topology needs, and what one costs."""

    switches_count: Numeric
    switch_usd: Numeric
    nics_count: Numeric
    nic_usd: Numeric
    cables_count: Numeric
    cable_usd: Numeric
    cable_usd_per_m: Numeric
    length_m: Numeric
    transceivers_count: Numeric
    transceiver_usd: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """What one accelerator's share of a network costs."""

    switches_usd: Numeric
    nics_usd: Numeric
    links_usd: Numeric
    total_usd: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class HostInputs:
    """What stands around an accelerator in its rack, per accelerator."""

    host_usd: Numeric
    rack_usd: Numeric
    cooling_usd_per_w: Numeric
    peak_w: Numeric
    second_tier_gb: Numeric
    second_tier_usd_per_gb: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def links_usd(
    cables_count: Numeric,
    cable_usd: Numeric,
    cable_usd_per_m: Numeric,
    length_m: Numeric,
    transceivers_count: Numeric,
    transceiver_usd: Numeric,
) -> Numeric:
    """Cables and the optics at their ends.

    A copper cable has no transceivers, a fibre has one at each end, a co-packaged one has its engine counted as such.

    Args:
        cables_count: Cables. [count], >= 0
        cable_usd: Price of a cable's ends and plugs. [USD], >= 0
        cable_usd_per_m: Price of its length. [USD/m], >= 0
        length_m: Length of one cable. [m], >= 0
        transceivers_count: Optical modules or engines. [count], >= 0
        transceiver_usd: Price of one. [USD], >= 0

    Returns:
        Price of all of them. [USD]

    Source:
        definition: counts by prices.

    >>> links_usd(2.0, 20.0, 1.0, 30.0, 4.0, 1000.0)
    4100.0
    """
    return cables_count * (cable_usd + cable_usd_per_m * length_m) + transceivers_count * transceiver_usd


def switch_price_usd(capacity_gbps: Numeric, price_usd_per_gbps: Numeric) -> Numeric:
    """Price of a switch by what it can switch, per direction.

    Within one class a switch with twice the ports costs twice as much; the class carries what a chassis costs.

    Args:
        capacity_gbps: Radix times port rate. [Gb/s], >= 0
        price_usd_per_gbps: Price of its class. [USD/(Gb/s)], >= 0

    Returns:
        Price of one switch. [USD]

    Source:
        definition: proportional to capacity.

    >>> switch_price_usd(25600.0, 1.5)
    38400.0
    """
    return capacity_gbps * price_usd_per_gbps


def network(inputs: NetworkInputs) -> Network:
    """One network's bill from the counts of its topology.

    Args:
        inputs: Counts and prices per accelerator.

    Source:
        definition: counts by prices.

    >>> float(network(NetworkInputs(0.1, 36000.0, 1.0, 1400.0, 2.0, 20.0, 1.0, 30.0, 4.0, 700.0)).total_usd)
    7900.0
    """
    switches_usd = inputs.switches_count * inputs.switch_usd
    nics_usd = inputs.nics_count * inputs.nic_usd
    cables_usd = links_usd(
        inputs.cables_count,
        inputs.cable_usd,
        inputs.cable_usd_per_m,
        inputs.length_m,
        inputs.transceivers_count,
        inputs.transceiver_usd,
    )
    return Network(switches_usd, nics_usd, cables_usd, switches_usd + nics_usd + cables_usd)


def host_and_rack_usd(host: HostInputs) -> Numeric:
    """Board, host, rack and the cooling inside it; the second memory tier is an item of its own.

    Args:
        host: Prices per accelerator and the power that must be cooled.

    Returns:
        Price of everything in the rack that is neither accelerator, memory nor network. [USD]

    Source:
        definition: sum of the parts.

    >>> host_and_rack_usd(HostInputs(2600.0, 400.0, 0.5, 1000.0, 0.0, 0.0))
    3500.0
    """
    return host.host_usd + host.rack_usd + host.cooling_usd_per_w * host.peak_w


def marked_up_usd(cost_usd: Numeric, margin_frac: Numeric) -> Numeric:
    """What a seller adds so that the margin is its share of the price it asks.

    Args:
        cost_usd: What the goods cost the seller. [USD], >= 0
        margin_frac: Gross margin: share of the price that is not cost. [1], 0 to below 1

    Returns:
        The seller's margin in money; cost and margin add up to the price. [USD]

    Source:
        definition: margin / (1 - margin) of the cost.

    >>> marked_up_usd(3000.0, 0.75)
    9000.0
    """
    return cost_usd * (margin_frac / (1.0 - margin_frac))
