"""The two networks of a batch: topology, hops, counts, and their share of failures and power."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codesign.candidates import Candidates
from codesign.catalog import Catalog
from codesign.columns import remade
from codesign.model.fabric.topology import Topology, TopologyInputs, topology, torus_hops_count
from codesign.units import Array

#: Which class of switch and NIC carries a protocol, and what a rate of its class is (switches.yaml, nics.yaml).
SWITCH_OF = {
    "nvlink5": "nvlink", "ualink_200g": "scale_up_ethernet", "sue": "scale_up_ethernet", "uec": "ethernet_800g",
    "rocev2": "ethernet_800g", "infiniband": "infiniband_400g", "pcie5": "scale_up_ethernet",
    "pcie6": "scale_up_ethernet", "pcie7": "scale_up_ethernet", "cxl3": "scale_up_ethernet", "ucie": "no_switch",
    "generic": "scale_up_ethernet",
}  # fmt: skip


EXCHANGE_COUNT = 256.0  # experts of the largest published models: an exchange on a torus spans a block of that size


@dataclass(frozen=True, slots=True, eq=False)
class Networks:
    """Topologies of scale-up and scale-out, and the switch radix each was built with."""

    up: Topology
    out: Topology
    up_radix_count: Array
    out_radix_count: Array
    up_switch: list[str]
    out_switch: list[str]
    exchange_ratio: Array  # by how much the scale-up network slows an exchange among the ranks that hold experts

    def rows(self, at: NDArray[np.intp]) -> "Networks":
        """Some rows, perhaps several times."""

        def of(one: Topology) -> Topology:
            return remade(one, lambda value: np.asarray(value)[at])

        up_switch, out_switch = ([words[i] for i in at] for words in (self.up_switch, self.out_switch))
        return Networks(
            of(self.up),
            of(self.out),
            self.up_radix_count[at],
            self.out_radix_count[at],
            up_switch,
            out_switch,
            self.exchange_ratio[at],
        )


def switch_words(candidates: Candidates, prefix: str) -> list[str]:
    """Class of switch of every row; endpoints that forward for each other have none."""
    direct = {"fully_connected", "torus_2d", "torus_3d"}
    protocols, kinds = candidates.words(f"{prefix}_protocol"), candidates.words(f"{prefix}_topology")
    rates = candidates.numbers("nic_rate_gbps")
    words = ["no_switch" if kind in direct else SWITCH_OF[name] for name, kind in zip(protocols, kinds, strict=True)]
    if prefix == "scale_out":
        fast = {"infiniband_400g": "infiniband_800g"}
        words = [fast.get(w, w) if rate > 400.0 else w for w, rate in zip(words, rates, strict=True)]
    return words


def networks(
    candidates: Candidates, catalog: Catalog, up_ports: Array, up_port_gbps: Array, cluster_count: float
) -> Networks:
    """Topologies of a batch for one size of cluster."""
    up_switch, out_switch = switch_words(candidates, "scale_up"), switch_words(candidates, "scale_out")
    nic_gbps = candidates.numbers("nic_rate_gbps")
    up_radix = _radix(catalog, up_switch, up_port_gbps)
    out_radix = _radix(catalog, out_switch, nic_gbps)
    up_kind, out_kind = candidates.words("scale_up_topology"), candidates.words("scale_out_topology")
    one = np.ones(len(candidates))
    up = topology(
        TopologyInputs(
            endpoints_count=candidates.numbers("scale_up_domain_count"),
            ports_count=up_ports,
            radix_count=up_radix,
            tiers_count=np.where(np.array(up_kind) == "fat_tree", 2.0, 1.0),
            oversubscription_ratio=one,
            **_facts(catalog, up_kind),
        )
    )
    domain = candidates.numbers("scale_up_domain_count")
    whole = np.maximum(cluster_count, domain)
    rails = np.array(out_kind) == "rail_only"  # each rail is a network of its own: one accelerator of every domain
    out = topology(
        TopologyInputs(
            endpoints_count=np.where(rails, whole / domain, whole),
            ports_count=one,
            radix_count=out_radix,
            tiers_count=candidates.numbers("scale_out_tiers_count"),
            oversubscription_ratio=candidates.numbers("scale_out_oversubscription_ratio"),
            **_facts(catalog, out_kind),
        )
    )
    facts = _facts(catalog, up_kind)
    ranks = np.minimum(np.minimum(domain, cluster_count), EXCHANGE_COUNT)
    torus = facts["torus_dimensions_count"]
    around = np.maximum(torus_hops_count(ranks, np.maximum(torus, 1.0)), 1.0)
    exchange = np.where(torus > 0.0, around, up.all_to_all_ratio)
    return Networks(up, out, up_radix, out_radix, up_switch, out_switch, exchange)


def _radix(catalog: Catalog, switches: list[str], port_gbps: Array) -> Array:
    """Ports of a switch at the rate of the link: its capacity over that rate, whole, at least two."""
    capacity = {name: catalog.value("switches", name, "capacity_gbps") for name in dict.fromkeys(switches)}
    return np.maximum(np.floor(np.array([capacity[name] for name in switches]) / port_gbps), 2.0)


def _facts(catalog: Catalog, kinds: list[str]) -> dict[str, Array]:
    names = ("mesh_flag", "torus_dimensions_count", "dragonfly_flag", "rail_only_flag", "spray_frac")
    known = {kind: {n: catalog.value("topologies", kind, n) for n in names} for kind in dict.fromkeys(kinds)}
    return {n: np.array([known[kind][n] for kind in kinds]) for n in names}
