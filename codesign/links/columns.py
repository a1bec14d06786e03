"""The choices of a batch of links: which there are, and look-ups of facts by the names in them."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from codesign.catalog import Catalog
from codesign.errors import CatalogError, nearest
from codesign.units import Array

#: levels and bits per symbol of a line code
MODULATIONS: Mapping[str, tuple[float, float]] = {
    "nrz": (2.0, 1.0), "pam4": (4.0, 2.0), "pam6": (6.0, 2.5), "pam8": (8.0, 3.0),
}  # fmt: skip
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


class Columns:
    """Choices of one batch, words and numbers, with look-ups of facts by name.

    What is chosen once or left to its default stays one number, as an array without axes: the chain then works it out
    once instead of in every row.
    """

    def __init__(self, catalog: Catalog, choices: Mapping[str, Choice]) -> None:
        self.catalog, self.choices = catalog, choices
        self._codes: dict[str, tuple[tuple[str, ...], NDArray[np.intp]]] = {}

    def codes(self, name: str) -> tuple[tuple[str, ...], NDArray[np.intp]]:
        """The distinct words of a column, and which of them each row has."""
        if name not in self._codes:
            column = self.choices.get(name, WORDS[name])
            words = np.asarray(column)
            order: dict[str, int] = {}
            rows = np.array([order.setdefault(word, len(order)) for word in words.reshape(-1).tolist()], dtype=np.intp)
            self._codes[name] = tuple(order), rows.reshape(words.shape)
        return self._codes[name]

    def numbers(self, name: str, default: float | Array | None = None) -> Array:
        """A decided number; else the given default; else that of link_defaults.yaml."""
        column = self.choices.get(name)
        if column is None:
            column = self.default("link", name) if default is None else default
        return np.array(column, dtype=np.float64)

    def facts(self, kind: str, word: str) -> Callable[[str], Array]:
        """Facts of the technology each row names, by fact."""
        return lambda name: self.table(word, lambda technology: self.catalog.value(kind, technology, name))

    def table(self, word: str, value: Callable[[str], float]) -> Array:
        """A number by word."""
        names, rows = self.codes(word)
        return np.asarray(np.array([value(name) for name in names], dtype=np.float64)[rows])

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
