"""From names to the numbers of links: the catalog's codes, media, protocols and equalisers as `LinkInputs` columns.

Uses: the candidates of a search, the `link` command, the tests. What a choice leaves out comes from the `link` entry of
link_defaults.yaml. Die-to-die interfaces are links too: `die_to_die_inputs`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from codesign.catalog import Catalog
from codesign.errors import CatalogError, nearest
from codesign.links.codes import fec_inputs
from codesign.links.columns import MODULATIONS, NUMBERS, PRICED_AS, RETRIES, WORDS, Choice, Columns
from codesign.links.parts import (
    channel_inputs,
    crossing_inputs,
    flow_inputs,
    load_inputs,
    medium_inputs,
    protocol_inputs,
    retry_inputs,
    serdes_fit,
    serdes_inputs,
)
from codesign.model.link.channel import domain_cable_m
from codesign.model.link.die_to_die import bump_field_mm2
from codesign.model.link.inputs import LinkInputs
from codesign.units import Array, mm_from_m

__all__ = ["MODULATIONS", "NUMBERS", "PRICED_AS", "RETRIES", "WORDS", "Choice", "die_to_die_inputs", "link_inputs",
           "rack_cable_m"]  # fmt: skip
BUMPS_PER_WIRE = 2.0  # a data bump and its share of power and ground


def link_inputs(catalog: Catalog, choices: Mapping[str, Choice]) -> LinkInputs:
    """Columns of numbers for links chosen by name.

    Args:
        catalog: Facts and fitted constants.
        choices: `WORDS` and `NUMBERS` -> one value, or one per row. ``lane_rate_gbps``, ``lanes_count`` and
            ``length_m`` are needed; the others have defaults. A ``die_to_die`` other than "none" puts the SerDes on
            I/O chiplets.

    Raises:
        CatalogError: a name is unknown, or a needed choice is missing.
    """
    known = [*WORDS, *NUMBERS]
    for name in choices:
        if name not in known:
            raise CatalogError(f"link: no choice {name!r}{nearest(name, known)}")
    for name in ("lane_rate_gbps", "lanes_count", "length_m"):
        if name not in choices:
            raise CatalogError(f"link: {name} must be given")
    columns = Columns(catalog, choices)
    serdes = serdes_inputs(columns)
    protocol, aligned, target = protocol_inputs(columns)
    medium = medium_inputs(columns)
    return LinkInputs(
        channel=channel_inputs(columns),
        medium=medium,
        serdes=serdes,
        fit=serdes_fit(catalog),
        crossing=crossing_inputs(columns),
        fec=fec_inputs(columns, serdes, protocol, aligned, target),
        protocol=protocol,
        retry=retry_inputs(columns),
        flow=flow_inputs(columns, protocol),
        load=load_inputs(columns),
    )


def die_to_die_inputs(
    catalog: Catalog, interfaces: Sequence[str], wire_rate_gbps: Choice, wires_count: Choice, length_m: Choice = 0.0
) -> LinkInputs:
    """Columns of numbers for die-to-die interfaces: forwarded clock, no code, retry in the adapter, printed densities.

    Args:
        catalog: Facts and fitted constants.
        interfaces: Names in die_to_die.yaml.
        wire_rate_gbps: Rate of one wire.
        wires_count: Data wires of one direction.
        length_m: Length of the wires.

    Raises:
        CatalogError: an interface is unknown.
    """
    names = list(interfaces)
    base = link_inputs(catalog, {
        "lane_rate_gbps": wire_rate_gbps, "lanes_count": wires_count, "length_m": length_m, "modulation": "nrz",
        "equaliser": "ctle", "fec": "none", "medium": "board", "protocol": "ucie", "hops_count": 0.0,
        "die_to_die": names, "precoding_flag": 0.0,
    })  # fmt: skip
    die = Columns(catalog, {"die_to_die": names, "length_m": length_m}).facts("die_to_die", "die_to_die")
    wire = np.asarray(base.serdes.lane_rate_gbps)
    field = bump_field_mm2(BUMPS_PER_WIRE, die("bump_um"))
    return replace(
        base,
        channel=replace(
            base.channel, package_mm=mm_from_m(np.asarray(base.medium.length_m)), board_mm=0.0, trace_m=0.0
        ),
        medium=replace(
            base.medium, own_ber=die("own_ber"), reach_limit_m=die("reach_mm") / 1000.0, common_fit=0.0, flap_fit=0.0,
            own_usd_per_gbps=0.0, lane_usd_per_m=0.0,
        ),
        serdes=replace(
            base.serdes, phy_ns=die("phy_ns"), forwarded_clock_flag=1.0, rated_pj_per_bit=die("energy_pj_per_bit"),
            rated_gbps_per_mm=die("edge_gbps_per_mm"), node_nm=5.0,
            area_mm2=np.maximum(wire * die("module_mm2") / die("module_gbps"), field),
        ),
        crossing=replace(base.crossing, chiplet_flag=0.0),
    )  # fmt: skip


def rack_cable_m(catalog: Catalog, domain_count: Array | float) -> Array:
    """Cable length that a scale-up domain needs, from the rack geometry of link_defaults.yaml."""
    default = {name: catalog.value("link_defaults", "link", name)
               for name in ("rack_accelerators_count", "in_rack_m", "rack_pitch_m", "drop_m")}  # fmt: skip
    length = domain_cable_m(
        domain_count, default["rack_accelerators_count"], default["in_rack_m"], default["rack_pitch_m"],
        default["drop_m"],
    )  # fmt: skip
    return np.asarray(length, dtype=np.float64)
