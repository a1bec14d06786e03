"""What a search may decide: every parameter of a design, its kind, its bounds and where its names come from.

This is the one list. `Candidates` has a column for each, a base platform gives each a value, spaces vary or fix any of
them, and docs/nomenclature.md is checked against it.
"""

from dataclasses import dataclass

from codesign.catalog import Catalog
from codesign.errors import SpaceError, nearest
from codesign.space import Value


@dataclass(frozen=True, slots=True)
class Parameter:
    """One decision: a word from ``words`` or a catalog ``kind``, or a number between ``low`` and ``high``."""

    name: str
    meaning: str
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    words: tuple[str, ...] = ()
    kind: str | None = None

    @property
    def is_word(self) -> bool:
        """Whether its value is a name rather than a number."""
        return bool(self.words) or self.kind is not None

    def options(self, catalog: Catalog) -> tuple[str, ...]:
        """The words it may be."""
        return self.words or tuple(catalog.technologies(str(self.kind)))

    def wrong(self, value: Value, catalog: Catalog) -> str | None:
        """Why it cannot have a value: what was got and what is wanted; nothing where it can."""
        if self.is_word:
            options = self.options(catalog)
            if not isinstance(value, str) or value not in options:
                return f"{self.name} cannot be {value!r}{nearest(str(value), options)}"
            return None
        if isinstance(value, str):
            return f"{self.name} is a number ({self.meaning}); got the word {value!r}"
        if not self.low <= value <= self.high:
            return f"{self.name} lies between {self.low:g} and {self.high:g}; got {value:g}"
        if self.whole and value != int(value):
            return f"{self.name} is a whole number; got {value:g}"
        return None


def _link(prefix: str, what: str) -> tuple[Parameter, ...]:
    def word(name: str, meaning: str, words: tuple[str, ...] = (), kind: str | None = None) -> Parameter:
        return Parameter(f"{prefix}_{name}", f"{meaning} of the {what} link", words=words, kind=kind)

    def number(name: str, meaning: str, low: float, high: float, whole: bool = True) -> Parameter:
        return Parameter(f"{prefix}_{name}", f"{meaning} of the {what} link", low, high, whole)

    return (
        number("lane_rate_gbps", "data rate of one lane and direction", 16, 448, False),
        word("modulation", "line code", ("nrz", "pam4", "pam6", "pam8")),
        word("equaliser", "equaliser class", ("ctle", "ffe_dfe", "adc_dsp")),
        word("fec", "forward error correction", kind="fec"),
        word("medium", "medium", kind="media"),
        word("protocol", "protocol", kind="protocols"),
        number("payload_bytes", "largest payload of a packet", 16, 9216),
        word("retry", "retry scheme", ("none", "go_back_n", "selective")),
        number("receive_buffer_bytes", "receive buffer per port", 256, 2**26),
        number("virtual_channels_count", "virtual channels", 1, 32),
        number("replay_buffer_bytes", "replay buffer per port", 256, 2**26),
        number("spare_lanes_count", "spare lanes per accelerator", 0, 64),
    )


UP_TOPOLOGIES = ("switched", "fully_connected", "fat_tree", "torus_2d", "torus_3d")
OUT_TOPOLOGIES = ("fat_tree", "rail_optimised", "rail_only", "dragonfly", "torus_3d")

PARAMETERS: tuple[Parameter, ...] = (
    *_link("scale_up", "scale-up"),
    Parameter("scale_up_lanes_count", "scale-up lanes per accelerator and direction", 1, 1024, True),
    Parameter("scale_up_port_lanes_count", "lanes bundled into one scale-up port", 1, 16, True),
    Parameter("scale_up_topology", "topology of the scale-up domain", words=UP_TOPOLOGIES),
    Parameter("scale_up_domain_count", "accelerators of one scale-up domain", 1, 16384, True),
    Parameter("scale_up_reduction", "where reductions happen", words=("endpoint", "in_network")),
    *_link("scale_out", "scale-out"),
    Parameter("nic_rate_gbps", "scale-out rate per accelerator and direction", 25, 6400),
    Parameter("scale_out_topology", "topology of the scale-out network", words=OUT_TOPOLOGIES),
    Parameter("scale_out_tiers_count", "switch tiers of the scale-out network", 1, 4, True),
    Parameter("scale_out_oversubscription_ratio", "traffic offered to the spine over its capacity", 1, 16),
    Parameter("memory_kind", "memory technology", kind="memory"),
    Parameter("memory_stacks_count", "stacks or devices per accelerator", 1, 64, True),
    Parameter("memory_height_count", "dies per stack", 1, 24, True),
    Parameter("memory_pin_rate_gbps", "data rate of one memory pin", 1, 64),
    Parameter("memory_write_queue_count", "entries of a channel's write queue", 4, 4096, True),
    Parameter("memory_outstanding_bytes", "bytes in flight the chip can keep towards its memory", 2**16, 2**28),
    Parameter("second_tier_kind", "memory behind the first tier", words=("none", "lpddr5x", "ddr5", "cxl")),
    Parameter("second_tier_gb", "capacity of the second tier per accelerator", 0, 8192),
    Parameter("node", "process node of the compute dies", kind="nodes"),
    Parameter("compute_scale_frac", "compute arrays relative to the base platform's", 0.05, 8),
    Parameter("sram_mb", "on-chip memory per accelerator", 1, 4096),
    Parameter("compute_dies_count", "compute dies per package", 1, 16, True),
    Parameter("io_dies_count", "I/O dies that carry the SerDes; 0 keeps them on the compute dies", 0, 16, True),
    Parameter("die_to_die", "interface between dies of a package", kind="die_to_die"),
    Parameter(
        "package", "how dies and stacks are joined", words=("cowos_s", "cowos_l", "fan_out", "emib", "organic", "soic")
    ),
    Parameter("host", "host and rack around the accelerators", words=("hgx_8", "nvl72", "custom_rack")),
    Parameter("cooling", "cooling of the package", words=("air", "liquid")),
    Parameter("power_cap_w", "power the package may draw", 50, 5000),
)

BY_NAME: dict[str, Parameter] = {parameter.name: parameter for parameter in PARAMETERS}


def parameter(name: str, place: str) -> Parameter:
    """A parameter by name.

    Raises:
        SpaceError: there is none; the message names the nearest.
    """
    if name not in BY_NAME:
        raise SpaceError(f"{place}: no parameter {name!r}{nearest(name, BY_NAME)}")
    return BY_NAME[name]
