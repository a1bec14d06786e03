"""The numbers one link is made of, by subject; `codesign.links` fills them from names."""

from dataclasses import dataclass

from codesign.columns import freeze
from codesign.model.link.bursts import BurstTable
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class ChannelInputs:
    """The electrical way of one segment, both ends added up."""

    package_mm: Numeric  # trace in packages, all of them
    package_per_mm: Numeric  # constant attenuation, nepers
    package_sqrt_ns_per_mm: Numeric
    package_ns_per_mm: Numeric
    sections_count: Numeric  # line sections of all packages, each of its own impedance
    package_ends_count: Numeric  # packages on the way
    package_delay_ns_per_mm: Numeric
    board_mm: Numeric  # of the hosts, whatever the length of the link
    trace_m: Numeric  # board that the link itself crosses; 0 where its length is cable or glass
    board_sqrt_ns_per_mm: Numeric
    board_ns_per_mm: Numeric
    connectors_count: Numeric
    connector_db: Numeric  # one, at connector_ghz
    connector_ghz: Numeric
    connector_reflection_ratio: Numeric  # amplitude that one reflects, at connector_ghz
    cable_m: Numeric  # copper that the signal itself crosses; 0 behind a retimer or in glass
    cable_low_ghz: Numeric
    cable_low_db_per_m: Numeric
    cable_high_ghz: Numeric
    cable_high_db_per_m: Numeric
    conductor_ratio: Numeric  # diameter over that of the measured cable
    crosstalk_db: Numeric  # transmitted signal over crosstalk at the receiver input

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class MediumInputs:
    """What lies between the two hosts: delay, its own errors, watts, dollars and failures."""

    length_m: Numeric
    delay_ns_per_m: Numeric
    reach_limit_m: Numeric  # of the medium itself, whatever the SerDes
    segments_count: Numeric  # electrical segments that a retimer separates: 1 or 2
    own_ber: Numeric  # errors the retimed or optical part adds
    own_snr_db: Numeric  # noise a linear optical part adds; large = none
    added_ns: Numeric  # retimers, DSPs
    own_pj_per_bit: Numeric  # both ends
    own_usd_per_gbps: Numeric  # both ends
    lane_usd_per_m: Numeric
    common_fit: Numeric  # what takes the whole link down
    lane_fit: Numeric  # what takes one lane down
    flap_fit: Numeric  # short losses of the link

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class SerdesInputs:
    """One lane's transmitter and receiver, and how many of them."""

    lane_rate_gbps: Numeric
    levels_count: Numeric
    symbol_bits: Numeric
    lanes_count: Numeric
    spare_lanes_count: Numeric
    node_nm: Numeric
    taps_count: Numeric
    feedback_frac: Numeric
    converter_bits_count: Numeric  # 0 = analog
    uncorrected_ratio: Numeric  # interference without taps at the reference loss, by class of equaliser
    memory_count: Numeric  # taps that cut it by e, by class of equaliser
    reference_echo_ratio: Numeric  # echo at the reference frequency, by class of equaliser
    sequence_gain_db: Numeric
    propagation_prob: Numeric
    amplitude_v: Numeric
    level_mismatch_ratio: Numeric
    transmitter_snr_db: Numeric
    noise_v2_per_ghz: Numeric
    random_ui: Numeric
    bounded_ui: Numeric
    implementation_db: Numeric  # margin the design must keep
    phy_ns: Numeric  # transmitter and receiver, no code
    area_mm2: Numeric  # one lane at 5 nm
    macro_depth_mm: Numeric
    rows_count: Numeric
    equaliser_pj_per_bit: Numeric
    forwarded_clock_flag: Numeric
    rated_pj_per_bit: Numeric  # published energy of a standard PHY; 0 = by the law
    rated_gbps_per_mm: Numeric  # published edge density of a standard PHY; 0 = by the macro

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class SerdesFit:
    """Fitted factors of the budget, the energy and the scaling (calibration/channel.yaml, serdes.yaml)."""

    shape_ratio: Numeric
    band_ratio: Numeric
    transmitter_ratio: Numeric
    slope_ratio: Numeric
    crest_db: Numeric
    crest_slope_ratio: Numeric
    reference_loss_db: Numeric
    tail_ratio: Numeric
    dispersion_exponent_ratio: Numeric
    package_weight_ratio: Numeric
    plug_weight_ratio: Numeric
    package_relief_ratio: Numeric
    crosstalk_relief_ratio: Numeric
    reference_ghz: Numeric
    echo_exponent_ratio: Numeric
    connector_weight_ratio: Numeric
    near_memory_count: Numeric
    far_weight_ratio: Numeric
    far_loss_ratio: Numeric
    section_weight_ratio: Numeric
    section_loss_ratio: Numeric
    section_reach_ratio: Numeric
    fastest_symbol_ghz: Numeric  # the budget was fitted up to it
    base_pj_per_bit: Numeric
    loss_exponent_ratio: Numeric
    node_exponent_ratio: Numeric
    converter_ratio: Numeric
    forwarded_clock_ratio: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class CrossingInputs:
    """SerDes on an I/O chiplet: one more die-to-die crossing at each end."""

    chiplet_flag: Numeric
    pj_per_bit: Numeric
    latency_ns: Numeric
    edge_gbps_per_mm: Numeric
    area_mm2_per_tbps: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class FecInputs:
    """The block code, its bursts and its delay."""

    symbols_count: Numeric
    data_symbols_count: Numeric
    correctable_count: Numeric
    symbol_size_bits: Numeric
    slices_count: Numeric  # line symbols in a code symbol
    interleave_count: Numeric
    inner_block_count: Numeric
    inner_data_count: Numeric
    inner_correctable_count: Numeric
    processing_ns: Numeric
    aligned_flag: Numeric
    hits_ratio: Numeric
    burst_row_count: Numeric
    limit_ber: Numeric  # bit error ratio before the code at which the loss target is just met
    table: BurstTable

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class ProtocolInputs:
    """Flits, headers and the path's fixed times."""

    payload_bytes: Numeric
    header_bytes: Numeric
    flit_bytes: Numeric
    flit_payload_bytes: Numeric
    framed_flag: Numeric  # 1 = frames of any length instead of flits
    encoding_frac: Numeric
    control_frac: Numeric
    endpoint_ns: Numeric  # both ends
    switch_ns: Numeric  # one switch, its ports included
    hops_count: Numeric  # switches on the way
    credit_flag: Numeric
    pfc_flag: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class RetryInputs:
    """How a lost flit is sent again."""

    go_back_flag: Numeric
    selective_flag: Numeric
    replay_bytes: Numeric
    detect_ns: Numeric
    timeout_ns: Numeric  # of the end-to-end transport, where the link does not retry

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class FlowInputs:
    """The receiver's buffer, how it is shared, and what it is made of."""

    buffer_bytes: Numeric
    channels_count: Numeric
    shared_flag: Numeric
    reserve_bytes: Numeric
    credit_processing_ns: Numeric
    credit_batch_ns: Numeric
    frame_bytes: Numeric
    overhead_bits: Numeric
    pause_bits: Numeric
    interface_bits: Numeric
    response_low_gbps: Numeric
    response_low_bits: Numeric
    response_high_gbps: Numeric
    response_high_bits: Numeric
    ports_count: Numeric
    random_frac: Numeric
    few_ratio: Numeric
    ports_exponent_ratio: Numeric
    channels_exponent_ratio: Numeric
    sram_mm2_per_mb: Numeric
    sram_w_per_mm2: Numeric
    sram_pj_per_byte: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class LoadInputs:
    """What the link is used for, and how it is kept up."""

    message_bytes: Numeric
    parallel_links_count: Numeric  # links one message is spread over, message_bytes on each
    offered_frac: Numeric
    variation_ratio: Numeric
    batch_count: Numeric
    tail_prob: Numeric
    repair_h: Numeric
    flap_ms: Numeric
    degradable_flag: Numeric  # 1 = a link goes on without a failed lane

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class LinkInputs:
    """Everything one link is made of."""

    channel: ChannelInputs
    medium: MediumInputs
    serdes: SerdesInputs
    fit: SerdesFit
    crossing: CrossingInputs
    fec: FecInputs
    protocol: ProtocolInputs
    retry: RetryInputs
    flow: FlowInputs
    load: LoadInputs
