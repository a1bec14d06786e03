"""From names to the numbers of links: the catalog's codes, media, protocols and equalisers as `LinkInputs` columns.

Uses: the candidates of a search, the `link` command, the tests. What a choice leaves out comes from the `link` entry of
link_defaults.yaml. Die-to-die interfaces are links too: `die_to_die_inputs`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from codesign.catalog import Catalog
from codesign.errors import CatalogError, nearest
from codesign.model.link.bursts import BurstTable, burst_defeat_probs, burst_failure_prob, burst_start_prob, bursts
from codesign.model.link.channel import conductor_mm, domain_cable_m
from codesign.model.link.die_to_die import bump_field_mm2
from codesign.model.link.fec import codewords_touched_count, flit_loss_prob, inner_code_ber, symbol_error_prob
from codesign.model.link.inputs import (
    ChannelInputs,
    CrossingInputs,
    FecInputs,
    FlowInputs,
    LinkInputs,
    LoadInputs,
    MediumInputs,
    ProtocolInputs,
    RetryInputs,
    SerdesFit,
    SerdesInputs,
)
from codesign.units import Array

#: levels and bits per symbol of a line code
MODULATIONS: Mapping[str, tuple[float, float]] = {
    "nrz": (2.0, 1.0), "pam4": (4.0, 2.0), "pam6": (6.0, 2.5), "pam8": (8.0, 3.0),
}  # fmt: skip
BUMPS_PER_WIRE = 2.0  # a data bump and its share of power and ground
RETRIES = ("none", "go_back_n", "selective")
#: entry of prices.yaml that prices a medium, where its name differs
PRICED_AS: Mapping[str, str] = {"board": "no_cable", "backplane": "no_cable", "cabled_backplane": "passive_copper"}
WORDS: Mapping[str, str] = {
    "modulation": "pam4", "equaliser": "adc_dsp", "fec": "kp4", "medium": "passive_copper", "protocol": "generic",
    "retry": "go_back_n", "node": "n5", "package_class": "package_class_a", "die_to_die": "none",
}  # fmt: skip
NUMBERS: tuple[str, ...] = (
    "lane_rate_gbps", "lanes_count", "length_m", "payload_bytes", "receive_buffer_bytes", "replay_buffer_bytes",
    "virtual_channels_count", "spare_lanes_count", "hops_count", "switch_ns", "endpoint_ns", "message_bytes",
    "offered_frac", "variation_ratio", "batch_count", "parallel_links_count", "random_frac", "ports_count",
    "shared_flag", "degradable_flag", "gauge_count", "precoding_flag", "rows_count", "macro_depth_mm", "repair_h",
    "flap_ms", "tail_prob", "timeout_ns", "detect_ns", "credit_processing_ns", "credit_batch_ns", "reserve_flits_count",
)  # fmt: skip
Choice = Sequence[str] | Sequence[float] | Array | NDArray[np.str_] | str | float


class _Columns:
    """Choices of one batch, words and numbers, with look-ups of facts by name."""

    def __init__(self, catalog: Catalog, choices: Mapping[str, Choice]) -> None:
        self.catalog, self.choices = catalog, choices
        self.count = max((1 if isinstance(c, str) else np.size(np.asarray(c))) for c in choices.values())
        self._codes: dict[str, tuple[tuple[str, ...], NDArray[np.intp]]] = {}

    def codes(self, name: str) -> tuple[tuple[str, ...], NDArray[np.intp]]:
        """The distinct words of a column, and which of them each row has."""
        if name not in self._codes:
            column = self.choices.get(name, WORDS[name])
            listed = [column] if isinstance(column, str) else np.atleast_1d(np.asarray(column)).tolist()
            order: dict[str, int] = {}
            rows = np.array([order.setdefault(word, len(order)) for word in listed], dtype=np.intp)
            self._codes[name] = tuple(order), np.broadcast_to(rows, (self.count,)).copy()
        return self._codes[name]

    def numbers(self, name: str, default: float | Array | None = None) -> Array:
        """A decided number; else the given default; else that of link_defaults.yaml."""
        column = self.choices.get(name)
        if column is None:
            column = self.default("link", name) if default is None else default
        return np.broadcast_to(np.asarray(column, dtype=np.float64), (self.count,)).copy()

    def facts(self, kind: str, word: str) -> Callable[[str], Array]:
        """Facts of the technology each row names, by fact."""
        return lambda name: self.table(word, lambda technology: self.catalog.value(kind, technology, name))

    def table(self, word: str, value: Callable[[str], float]) -> Array:
        """A number by word."""
        names, rows = self.codes(word)
        column: Array = np.array([value(name) for name in names], dtype=np.float64)[rows]
        return column

    def mapped(self, word: str, values: Mapping[str, float]) -> Array:
        """A number by word, from a mapping of this module."""

        def value(name: str) -> float:
            if name not in values:
                raise CatalogError(f"link: {word} cannot be {name!r}{nearest(name, values)}")
            return values[name]

        return self.table(word, value)

    def default(self, technology: str, name: str) -> float:
        """A number every link shares."""
        return self.catalog.value("link_defaults", technology, name)

    def group(self, technology: str) -> dict[str, float]:
        """All numbers of one entry that every link shares."""
        return {name: fact.value for name, fact in self.catalog.technology("link_defaults", technology).items()}


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
    columns = _Columns(catalog, choices)
    serdes = _serdes(columns)
    protocol, aligned, target = _protocol(columns)
    medium = _medium(columns)
    return LinkInputs(
        channel=_channel(columns),
        medium=medium,
        serdes=serdes,
        fit=_fit(catalog),
        crossing=_crossing(columns),
        fec=_fec(columns, serdes, protocol, aligned, target),
        protocol=protocol,
        retry=_retry(columns),
        flow=_flow(columns, protocol),
        load=_load(columns),
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
    die = _Columns(catalog, {"die_to_die": names, "length_m": length_m}).facts("die_to_die", "die_to_die")
    wire = np.asarray(base.serdes.lane_rate_gbps)
    field = bump_field_mm2(BUMPS_PER_WIRE, die("bump_um"))
    return replace(
        base,
        channel=replace(base.channel, package_mm=1000.0 * np.asarray(base.medium.length_m), board_mm=0.0),
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


def _channel(columns: _Columns) -> ChannelInputs:
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
        board_mm=media("board_mm") + 1000.0 * length * media("length_board_frac"),
        board_sqrt_ns_per_mm=columns.default("host_board", "skin_sqrt_ns_per_mm"),
        board_ns_per_mm=columns.default("host_board", "dielectric_ns_per_mm"),
        connectors_count=media("connectors_count"),
        connector_db=media("connector_db"),
        connector_ghz=media("connector_ghz"),
        cable_m=length * media("length_cable_frac"),
        cable_low_ghz=wire["low_ghz"],
        cable_low_db_per_m=wire["low_db_per_m"],
        cable_high_ghz=wire["high_ghz"],
        cable_high_db_per_m=wire["high_db_per_m"],
        conductor_ratio=thickness,
        crosstalk_db=media("crosstalk_db"),
    )


def _medium(columns: _Columns) -> MediumInputs:
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


def _serdes(columns: _Columns) -> SerdesInputs:
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


def _node_nm(columns: _Columns) -> Array:
    def value(name: str) -> float:
        if not name.startswith("n") or not name[1:].isdigit():
            raise CatalogError(f"link: node {name!r} is not n followed by its nanometres")
        return float(name[1:])

    return columns.table("node", value)


def _fit(catalog: Catalog) -> SerdesFit:
    surrogate = catalog.constants["channel"]["surrogate"]
    energy = catalog.constants["serdes"]["energy"]
    return SerdesFit(**{k: c.value for k, c in surrogate.items()}, **{k: c.value for k, c in energy.items()})


def _crossing(columns: _Columns) -> CrossingInputs:
    die = columns.facts("die_to_die", "die_to_die")
    return CrossingInputs(
        chiplet_flag=columns.table("die_to_die", lambda name: float(name != "none")),
        pj_per_bit=die("energy_pj_per_bit"),
        latency_ns=die("phy_ns"),
        edge_gbps_per_mm=die("edge_gbps_per_mm"),
        area_mm2_per_tbps=die("module_mm2") / die("module_gbps") * 1e3,
    )


def _protocol(columns: _Columns) -> tuple[ProtocolInputs, Array, Array]:
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


@lru_cache(maxsize=4096)
def _burst_row(first: float, following: float, correctable: float) -> tuple[float, ...]:
    return tuple(burst_defeat_probs(first, following, int(correctable)).defeat_prob[0].tolist())


def _burst_table(first: Array, following: Array, correctable: Array) -> tuple[BurstTable, Array]:
    """One row for each distinct kind of burst, and the row of each link."""
    kinds, place = np.unique(np.stack([first, following, correctable]), axis=1, return_inverse=True)
    rows = [_burst_row(*kind) for kind in kinds.T.tolist()]
    width = max(len(row) for row in rows)
    table = BurstTable(np.array([[*row, *[0.0] * (width - len(row))] for row in rows]).reshape(len(rows), width))
    return table, place.reshape(-1).astype(np.float64)


def _limit_ber(fec: FecInputs, propagation: Array, bits: Array, touched: Array, target: Array) -> Array:
    """Bit error ratio before the code at which a flit is lost with the target probability; bisection in decades.

    Solved once for each distinct row.
    """
    numbers = (
        fec.symbols_count, fec.correctable_count, fec.slices_count, fec.hits_ratio, fec.burst_row_count,
        fec.inner_block_count, fec.inner_correctable_count, propagation, bits, touched, target,
    )  # fmt: skip
    distinct, place = np.unique(np.stack([np.asarray(n) for n in numbers]), axis=1, return_inverse=True)
    symbols, correctable, slices, hits, row, block, inner, chain, per_symbol, touch, aim = distinct
    low, high = np.full(len(aim), -18.0), np.full(len(aim), float(np.log10(0.4)))
    for _ in range(50):
        middle = 0.5 * (low + high)
        wrong = np.minimum(inner_code_ber(10.0**middle, block, inner) * per_symbol, 0.999)
        start = symbol_error_prob(burst_start_prob(wrong, chain), slices) * hits
        lost = flit_loss_prob(burst_failure_prob(start, symbols, correctable, row, fec.table), touch)
        low, high = np.where(lost < aim, middle, low), np.where(lost < aim, high, middle)
    limit: Array = (10.0**low)[place.reshape(-1)]
    return limit


def _flit_bytes(protocol: ProtocolInputs) -> Array:
    frame = np.asarray(protocol.payload_bytes) + np.asarray(protocol.header_bytes)
    return np.where(np.asarray(protocol.framed_flag) > 0.5, frame, np.asarray(protocol.flit_bytes))


def _fec(columns: _Columns, serdes: SerdesInputs, protocol: ProtocolInputs, aligned: Array, target: Array) -> FecInputs:
    code = columns.facts("fec", "fec")
    bits, propagation = np.asarray(serdes.symbol_bits), np.asarray(serdes.propagation_prob)
    correctable, interleave = code("correctable_count"), code("interleave_count")
    slices = code("symbol_size_bits") / bits
    burst = bursts(propagation, slices, interleave, columns.numbers("precoding_flag"))
    table, place = _burst_table(np.asarray(burst.first_prob), np.asarray(burst.next_prob), correctable)
    fec = FecInputs(
        symbols_count=code("symbols_count"),
        data_symbols_count=code("data_symbols_count"),
        correctable_count=correctable,
        symbol_size_bits=code("symbol_size_bits"),
        slices_count=slices,
        interleave_count=interleave,
        inner_block_count=code("inner_block_count"),
        inner_data_count=code("inner_data_count"),
        inner_correctable_count=code("inner_correctable_count"),
        processing_ns=code("processing_ns"),
        aligned_flag=aligned,
        hits_ratio=burst.hits_ratio,
        burst_row_count=place,
        limit_ber=0.0,
        table=table,
    )
    payload = code("data_symbols_count") * code("symbol_size_bits") / 8.0
    touched = codewords_touched_count(_flit_bytes(protocol), payload, interleave, aligned)
    return replace(fec, limit_ber=_limit_ber(fec, propagation, bits, np.asarray(touched), target))


def _retry(columns: _Columns) -> RetryInputs:
    return RetryInputs(
        go_back_flag=columns.mapped("retry", {"none": 0.0, "go_back_n": 1.0, "selective": 0.0}),
        selective_flag=columns.mapped("retry", {"none": 0.0, "go_back_n": 0.0, "selective": 1.0}),
        replay_bytes=columns.numbers("replay_buffer_bytes"),
        detect_ns=columns.numbers("detect_ns"),
        timeout_ns=columns.numbers("timeout_ns"),
    )


def _flow(columns: _Columns, protocol: ProtocolInputs) -> FlowInputs:
    node = columns.facts("nodes", "node")
    head = columns.catalog.constants["buffers"]["head_of_line"]
    return FlowInputs(
        buffer_bytes=columns.numbers("receive_buffer_bytes"),
        channels_count=columns.numbers("virtual_channels_count"),
        shared_flag=columns.numbers("shared_flag"),
        reserve_bytes=columns.numbers("reserve_flits_count") * _flit_bytes(protocol),
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


def _load(columns: _Columns) -> LoadInputs:
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
