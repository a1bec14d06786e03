"""What a link costs: watts, area, edge, dollars and failures."""

from dataclasses import dataclass

import numpy as np

from codesign.columns import freeze
from codesign.model.link.coding import Coding
from codesign.model.link.die_to_die import edge_for_rate_mm
from codesign.model.link.inputs import LinkInputs
from codesign.model.link.signal import Signal
from codesign.model.link.sram import sram_mm2, sram_power_w
from codesign.model.link.transceiver import lane_edge_mm, lane_mm2, transceiver_pj_per_bit
from codesign.units import Numeric

_SPARES = 8  #: spare lanes beyond these change nothing any more


@dataclass(frozen=True, slots=True, eq=False)
class Silicon:
    """Watts, area, edge, dollars and failures of one direction of one link and its end."""

    serdes_pj_per_bit: Numeric
    medium_pj_per_bit: Numeric
    crossing_pj_per_bit: Numeric
    energy_pj_per_bit: Numeric
    serdes_power_w: Numeric
    medium_power_w: Numeric
    buffer_power_w: Numeric
    power_w: Numeric
    serdes_area_mm2: Numeric  # on the die that carries the SerDes
    crossing_area_mm2: Numeric  # on the accelerator die, where the SerDes are on a chiplet
    die_area_mm2: Numeric  # on the accelerator die: SerDes or crossing, and buffers
    edge_mm: Numeric  # of the accelerator die
    buffer_area_mm2: Numeric
    medium_usd: Numeric
    failure_fit: Numeric
    flap_fit: Numeric
    degraded_loss_frac: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def link_down_fit(
    common_fit: Numeric, lane_fit: Numeric, lanes_count: Numeric, spare_lanes_count: Numeric, repair_h: Numeric
) -> Numeric:
    """Failures that take a link down: common parts, and more lanes lost than there are spares before a repair.

    Args:
        common_fit: Failures of what all lanes share. [FIT]
        lane_fit: Failures of one lane. [FIT]
        lanes_count: Working lanes. [count]
        spare_lanes_count: Spare lanes, a whole number. [count]
        repair_h: Time until a failed lane is repaired. [h]

    Returns:
        Failures of the link per 1e9 hours. [FIT]

    Source:
        definition: Poisson failures within the time to repair.

    >>> float(link_down_fit(common_fit=10, lane_fit=5, lanes_count=8, spare_lanes_count=0, repair_h=24))
    50.0
    """
    lanes = lane_fit * (lanes_count + spare_lanes_count)
    again = np.minimum(lanes * repair_h * 1e-9, 1.0)
    ways: Numeric = 1.0
    for spare in range(1, _SPARES + 1):
        spared = np.greater_equal(spare_lanes_count, spare)
        if not np.count_nonzero(spared):
            break
        ways = ways * np.where(spared, again / spare, 1.0)
    return common_fit + lanes * ways


def silicon(inputs: LinkInputs, line: Signal, code: Coding) -> Silicon:
    """Watts, area, edge, dollars and failures.

    Args:
        inputs: The link.
        line: What the SerDes has to bridge.
        code: Rates.

    Returns:
        Costs of one direction; area, edge and dollars are those of one end of the link with both directions.

    Source:
        definition: sums of parts; each law has its own source.

    >>> from codesign.model.link.example import example_inputs
    >>> from codesign.model.link.chain import link
    >>> result = link(example_inputs())
    >>> float(silicon(example_inputs(), result.signal, result.coding).buffer_area_mm2)
    0.032768
    """
    serdes, fit, medium, crossing = inputs.serdes, inputs.fit, inputs.medium, inputs.crossing
    flow, load, raw = inputs.flow, inputs.load, code.raw_rate_gbps
    all_lanes = serdes.lanes_count + serdes.spare_lanes_count
    law = transceiver_pj_per_bit(
        line.insertion_loss_db, serdes.node_nm, np.minimum(serdes.converter_bits_count, 1.0),
        serdes.forwarded_clock_flag, fit.base_pj_per_bit, fit.loss_exponent_ratio, fit.node_exponent_ratio,
        fit.converter_ratio, fit.forwarded_clock_ratio,
    )  # fmt: skip
    equaliser = serdes.equaliser_pj_per_bit * (serdes.node_nm / 5.0) ** fit.node_exponent_ratio
    rated = serdes.rated_pj_per_bit > 0.0
    phy = np.where(rated, serdes.rated_pj_per_bit, law + equaliser)
    crossing_pj = crossing.chiplet_flag * 2.0 * crossing.pj_per_bit
    lane = lane_mm2(serdes.area_mm2, serdes.node_nm, fit.node_exponent_ratio)
    serdes_mm2 = lane * all_lanes
    by_macro = lane_edge_mm(lane, serdes.macro_depth_mm, serdes.rows_count) * all_lanes
    by_density = edge_for_rate_mm(serdes.lane_rate_gbps * all_lanes, np.maximum(serdes.rated_gbps_per_mm, 1e-9))
    edge = np.where(serdes.rated_gbps_per_mm > 0.0, by_density, by_macro)
    crossing_mm2 = crossing.chiplet_flag * crossing.area_mm2_per_tbps * raw * 1e-3
    buffers = flow.buffer_bytes + inputs.retry.replay_bytes
    buffer_mm2 = sram_mm2(buffers, flow.sram_mm2_per_mb)
    buffer_w = sram_power_w(buffer_mm2, flow.sram_w_per_mm2, raw, flow.sram_pj_per_byte)
    pj = phy + medium.own_pj_per_bit + crossing_pj
    down = link_down_fit(
        medium.common_fit, medium.lane_fit, serdes.lanes_count, serdes.spare_lanes_count, load.repair_h
    )
    lost = 1.0 - load.degradable_flag * (1.0 - 1.0 / serdes.lanes_count)
    away = down * load.repair_h * lost + medium.flap_fit * load.flap_ms / 3.6e6
    chip = crossing.chiplet_flag
    return Silicon(
        serdes_pj_per_bit=phy,
        medium_pj_per_bit=medium.own_pj_per_bit,
        crossing_pj_per_bit=crossing_pj,
        energy_pj_per_bit=pj,
        serdes_power_w=(phy + crossing_pj) * raw * 1e-3,
        medium_power_w=medium.own_pj_per_bit * raw * 1e-3,
        buffer_power_w=buffer_w,
        power_w=pj * raw * 1e-3 + buffer_w,
        serdes_area_mm2=serdes_mm2,
        crossing_area_mm2=crossing_mm2,
        die_area_mm2=(1.0 - chip) * serdes_mm2 + crossing_mm2 + buffer_mm2,
        edge_mm=(1.0 - chip) * edge + chip * edge_for_rate_mm(raw, crossing.edge_gbps_per_mm),
        buffer_area_mm2=buffer_mm2,
        medium_usd=medium.own_usd_per_gbps * raw + medium.lane_usd_per_m * medium.length_m * all_lanes,
        failure_fit=down,
        flap_fit=medium.flap_fit,
        degraded_loss_frac=np.minimum(away * 1e-9, 1.0),
    )
