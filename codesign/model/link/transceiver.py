"""What a lane of SerDes costs: energy, area, die edge."""

from codesign.units import Numeric, empirical


@empirical("serdes_designs.csv, usable = yes")
def transceiver_pj_per_bit(
    loss_db: Numeric,
    node_nm: Numeric,
    converter_flag: Numeric,
    forwarded_clock_flag: Numeric,
    base_pj_per_bit: Numeric,
    loss_exponent_ratio: Numeric,
    node_exponent_ratio: Numeric,
    converter_ratio: Numeric,
    forwarded_clock_ratio: Numeric,
) -> Numeric:
    """Energy of a whole transceiver, transmitter and receiver, per bit.

    A power law in the loss it bridges and in the node; a converter with a DSP costs a factor, a forwarded clock
    saves one. From 10 to 224 Gb/s no further dependence on the rate shows in the published designs.

    Args:
        loss_db: Insertion loss bridged. [dB], >= 0
        node_nm: Process node by its name. [nm]
        converter_flag: 1 for an ADC with DSP. [1]
        forwarded_clock_flag: 1 for parallel links that forward their clock. [1]
        base_pj_per_bit: Analog transceiver at 5 nm and no loss. [pJ/bit]
        loss_exponent_ratio: Exponent of 1 + loss. [1]
        node_exponent_ratio: Exponent of node over 5 nm. [1]
        converter_ratio: Factor of ADC and DSP. [1]
        forwarded_clock_ratio: Factor of a forwarded clock. [1]

    Returns:
        Energy per bit, transmit and receive. [pJ/bit]

    Source:
        definition: log-linear fit over published designs, each cited in serdes_designs.csv.

    >>> round(transceiver_pj_per_bit(9.0, 5.0, 0.0, 0.0, 0.2, 1.0, 0.5, 1.5, 0.7), 6)
    2.0
    """
    scale = (1.0 + loss_db) ** loss_exponent_ratio * (node_nm / 5.0) ** node_exponent_ratio
    return base_pj_per_bit * scale * converter_ratio**converter_flag * forwarded_clock_ratio**forwarded_clock_flag


@empirical("facts of equalisers.yaml at 5 nm, scaled like the energy")
def lane_mm2(area_mm2: Numeric, node_nm: Numeric, node_exponent_ratio: Numeric) -> Numeric:
    """Area of one lane; most of it is analog and shrinks far less than logic.

    Args:
        area_mm2: Area of a lane of this class at 5 nm. [mm2]
        node_nm: Process node by its name. [nm]
        node_exponent_ratio: Exponent of node over 5 nm. [1]

    Returns:
        Area of the lane. [mm2]

    Source:
        definition: power law in the node.

    >>> lane_mm2(area_mm2=0.4, node_nm=5.0, node_exponent_ratio=0.5)
    0.4
    """
    return area_mm2 * (node_nm / 5.0) ** node_exponent_ratio


def lane_edge_mm(lane_mm2: Numeric, macro_depth_mm: Numeric, rows_count: Numeric) -> Numeric:
    """Die edge one lane takes when its macro reaches `macro_depth_mm` into the die and rows stand behind each other.

    Args:
        lane_mm2: Area of the lane. [mm2]
        macro_depth_mm: Depth of a macro. [mm], > 0
        rows_count: Rows of macros behind each other. [count], >= 1

    Returns:
        Edge per lane. [mm]

    Source:
        definition: area over depth.

    >>> lane_edge_mm(lane_mm2=0.45, macro_depth_mm=1.5, rows_count=1)
    0.3
    """
    return lane_mm2 / (macro_depth_mm * rows_count)
