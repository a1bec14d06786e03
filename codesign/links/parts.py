"""The parts of a link as columns of numbers, each from the facts its names stand for."""

import numpy as np

from codesign.catalog import Catalog
from codesign.errors import CatalogError
from codesign.links.codes import flit_bytes
from codesign.links.columns import MODULATIONS, PRICED_AS, Columns
from codesign.model.link.channel import conductor_mm
from codesign.model.link.inputs import (
    ChannelInputs,
    CrossingInputs,
    FlowInputs,
    LoadInputs,
    MediumInputs,
    ProtocolInputs,
    RetryInputs,
    SerdesFit,
    SerdesInputs,
)
from codesign.units import Array


def channel_inputs(columns: Columns) -> ChannelInputs:
    """The electrical way of each row."""
    media = columns.facts("media", "medium")
    length = columns.numbers("length_m")
    wire = {n: columns.default("twinax_26", n) for n in ("low_ghz", "low_db_per_m", "high_ghz", "high_db_per_m")}
    package = columns.facts("link_defaults", "package_class")
    thickness = conductor_mm(columns.numbers("gauge_count")) / conductor_mm(columns.default("twinax_26", "gauge_count"))
    return ChannelInputs(
        package_mm=package("end_mm") * media("package_ends_count"),
        package_per_mm=package("attenuation_per_mm"),
        package_sqrt_ns_per_mm=package("skin_sqrt_ns_per_mm"),
        package_ns_per_mm=package("dielectric_ns_per_mm"),
        sections_count=package("sections_count") * media("package_ends_count"),
        package_ends_count=media("package_ends_count"),
        package_delay_ns_per_mm=package("delay_ns_per_mm"),
        board_mm=media("board_mm"),
        trace_m=length * media("length_board_frac"),
        board_sqrt_ns_per_mm=columns.default("host_board", "skin_sqrt_ns_per_mm"),
        board_ns_per_mm=columns.default("host_board", "dielectric_ns_per_mm"),
        connectors_count=media("connectors_count"),
        connector_db=media("connector_db"),
        connector_ghz=media("connector_ghz"),
        connector_reflection_ratio=media("connector_reflection_ratio"),
        cable_m=length * media("length_cable_frac"),
        cable_low_ghz=wire["low_ghz"],
        cable_low_db_per_m=wire["low_db_per_m"],
        cable_high_ghz=wire["high_ghz"],
        cable_high_db_per_m=wire["high_db_per_m"],
        conductor_ratio=thickness,
        crosstalk_db=media("crosstalk_db"),
    )


def medium_inputs(columns: Columns) -> MediumInputs:
    """The medium of each row, its price included."""
    media, catalog = columns.facts("media", "medium"), columns.catalog

    def price(name: str) -> Array:
        def value(medium: str) -> float:
            return catalog.value("prices", PRICED_AS.get(medium, medium), name)

        return columns.table("medium", value)

    ends_usd = price("cable_usd") / price("cable_gbps") + 2.0 * price("transceiver_usd") / price("transceiver_gbps")
    return MediumInputs(
        length_m=columns.numbers("length_m"),
        delay_ns_per_m=media("delay_ns_per_m"),
        reach_limit_m=media("reach_limit_m"),
        segments_count=media("segments_count"),
        own_ber=media("own_ber"),
        own_snr_db=media("own_snr_db"),
        added_ns=media("added_ns"),
        own_pj_per_bit=media("devices_count") * media("device_w") / (2.0 * media("device_gbps")) * 1e3,
        own_usd_per_gbps=ends_usd,
        lane_usd_per_m=price("cable_usd_per_m") / price("cable_gbps") * columns.numbers("lane_rate_gbps"),
        common_fit=media("common_fit"),
        lane_fit=media("lane_fit"),
        flap_fit=media("flap_fit"),
    )


def serdes_inputs(columns: Columns) -> SerdesInputs:
    """The lane of each row."""
    lane, catalog = columns.facts("serdes", "equaliser"), columns.catalog

    def fitted(name: str) -> Array:
        return columns.table("equaliser", lambda technology: catalog.constant("channel", technology, name))

    node_exponent = catalog.constant("serdes", "energy", "node_exponent_ratio")
    return SerdesInputs(
        lane_rate_gbps=columns.numbers("lane_rate_gbps"),
        levels_count=columns.mapped("modulation", {k: v[0] for k, v in MODULATIONS.items()}),
        symbol_bits=columns.mapped("modulation", {k: v[1] for k, v in MODULATIONS.items()}),
        lanes_count=columns.numbers("lanes_count"),
        spare_lanes_count=columns.numbers("spare_lanes_count"),
        node_nm=_node_nm(columns),
        taps_count=lane("taps_count"),
        feedback_frac=fitted("feedback_frac"),
        converter_bits_count=lane("converter_bits_count"),
        uncorrected_ratio=fitted("uncorrected_ratio"),
        memory_count=fitted("memory_count"),
        reference_echo_ratio=fitted("reference_echo_ratio"),
        sequence_gain_db=fitted("sequence_gain_db"),
        propagation_prob=lane("propagation_prob"),
        **columns.group("com"),
        phy_ns=lane("phy_ns"),
        area_mm2=lane("area_mm2"),
        macro_depth_mm=columns.numbers("macro_depth_mm"),
        rows_count=columns.numbers("rows_count"),
        equaliser_pj_per_bit=lane("equaliser_pj_per_bit") * (5.0 / lane("equaliser_node_nm")) ** node_exponent,
        forwarded_clock_flag=0.0,
        rated_pj_per_bit=0.0,
        rated_gbps_per_mm=0.0,
    )


def _node_nm(columns: Columns) -> Array:
    def value(name: str) -> float:
        if not name.startswith("n") or not name[1:].isdigit():
            raise CatalogError(f"link: node {name!r} is not n followed by its nanometres")
        return float(name[1:])

    return columns.table("node", value)


def serdes_fit(catalog: Catalog) -> SerdesFit:
    """Fitted factors, the same for all rows."""
    surrogate = catalog.constants["channel"]["surrogate"]
    energy = catalog.constants["serdes"]["energy"]
    return SerdesFit(**{k: c.value for k, c in surrogate.items()}, **{k: c.value for k, c in energy.items()})


def crossing_inputs(columns: Columns) -> CrossingInputs:
    """The die-to-die crossing of each row."""
    die = columns.facts("die_to_die", "die_to_die")
    return CrossingInputs(
        chiplet_flag=columns.table("die_to_die", lambda name: float(name != "none")),
        pj_per_bit=die("energy_pj_per_bit"),
        latency_ns=die("phy_ns"),
        edge_gbps_per_mm=die("edge_gbps_per_mm"),
        area_mm2_per_tbps=die("module_mm2") / die("module_gbps") * 1e3,
    )


def protocol_inputs(columns: Columns) -> tuple[ProtocolInputs, Array, Array]:
    """The protocol of each row; whether flits start on codewords; the loss it is built for."""
    name = columns.facts("protocols", "protocol")
    protocol = ProtocolInputs(
        payload_bytes=np.minimum(columns.numbers("payload_bytes"), name("max_payload_bytes")),
        header_bytes=name("header_bytes"),
        flit_bytes=name("flit_bytes"),
        flit_payload_bytes=name("flit_payload_bytes"),
        framed_flag=name("framed_flag"),
        encoding_frac=name("encoding_frac"),
        control_frac=name("control_frac"),
        endpoint_ns=columns.numbers("endpoint_ns", name("endpoint_ns")),
        switch_ns=columns.numbers("switch_ns", name("switch_ns")),
        hops_count=columns.numbers("hops_count"),
        credit_flag=name("credit_flag"),
        pfc_flag=name("pfc_flag"),
    )
    return protocol, name("aligned_flag"), name("loss_target_prob")


def retry_inputs(columns: Columns) -> RetryInputs:
    """The retry scheme of each row."""
    return RetryInputs(
        go_back_flag=columns.mapped("retry", {"none": 0.0, "go_back_n": 1.0, "selective": 0.0}),
        selective_flag=columns.mapped("retry", {"none": 0.0, "go_back_n": 0.0, "selective": 1.0}),
        replay_bytes=columns.numbers("replay_buffer_bytes"),
        detect_ns=columns.numbers("detect_ns"),
        timeout_ns=columns.numbers("timeout_ns"),
    )


def flow_inputs(columns: Columns, protocol: ProtocolInputs) -> FlowInputs:
    """Buffers and flow control of each row."""
    node = columns.facts("nodes", "node")
    head = columns.catalog.constants["buffers"]["head_of_line"]
    return FlowInputs(
        buffer_bytes=columns.numbers("receive_buffer_bytes"),
        channels_count=columns.numbers("virtual_channels_count"),
        shared_flag=columns.numbers("shared_flag"),
        reserve_bytes=columns.numbers("reserve_flits_count") * flit_bytes(protocol),
        credit_processing_ns=columns.numbers("credit_processing_ns"),
        credit_batch_ns=columns.numbers("credit_batch_ns"),
        frame_bytes=np.asarray(protocol.payload_bytes) + np.asarray(protocol.header_bytes),
        **columns.group("pfc"),
        ports_count=columns.numbers("ports_count"),
        random_frac=columns.numbers("random_frac"),
        **{name: constant.value for name, constant in head.items()},
        sram_mm2_per_mb=8.0 * node("bitcell_um2") / columns.default("sram", "array_frac"),
        sram_w_per_mm2=node("sram_leakage_w_per_mm2"),
        sram_pj_per_byte=columns.default("sram", "access_pj_per_byte"),
    )


def load_inputs(columns: Columns) -> LoadInputs:
    """What each row is used for."""
    return LoadInputs(
        message_bytes=columns.numbers("message_bytes"),
        parallel_links_count=columns.numbers("parallel_links_count"),
        offered_frac=columns.numbers("offered_frac"),
        variation_ratio=columns.numbers("variation_ratio"),
        batch_count=columns.numbers("batch_count"),
        tail_prob=columns.numbers("tail_prob"),
        repair_h=columns.numbers("repair_h"),
        flap_ms=columns.numbers("flap_ms"),
        degradable_flag=columns.numbers("degradable_flag"),
    )
