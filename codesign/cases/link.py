"""Measured copies between endpoints: GPU to GPU, host to GPU, card to card; bandwidth or the time of a message.

Time = start + bytes / rate. The rate is the link's own, less flits and headers of its protocol, less what the endpoints
reach (one fitted share for each class of endpoint). Reads carry smaller packets, and two-way reads send their requests
against the data.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.link.framing import message_frac
from codesign.model.link.inputs import ProtocolInputs
from codesign.units import gbytes_per_s

LARGE_BYTES = 2.0**28  # what a bandwidth test copies
READ_BYTES = 128.0  # a read asks for a cache line at a time
SECONDS = {"us": 1e-6, "ms": 1e-3, "ns": 1e-9, "s": 1.0}
PCIE_GTS = {"3": 8.0, "4": 16.0, "5": 32.0, "6": 64.0}
#: class of endpoints -> protocol that frames its packets, its usual payload
CLASSES = {
    "nvlink": ("nvlink5", 256.0), "pcie": ("pcie5", 256.0), "c2c": ("nvlink5", 256.0), "mesh": ("nvlink5", 256.0),
    "network": ("rocev2", 4096.0), "infiniband": ("infiniband", 4096.0),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What a row says, read once."""

    kind: str
    library: bool
    read: bool
    both_ways: bool
    rate_gbytes_per_s: float  # of the line, added over the directions that the value adds


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Rows of kind ``link``."""
    value, size = rows.numbers("value"), rows.numbers("bytes")
    predicted = np.full(len(rows), np.nan)
    refused: list[str | None] = []
    for i in range(len(rows)):
        case = case_of(rows, i, catalog)
        reason = case if isinstance(case, str) else None
        if not isinstance(case, str):
            unit = rows.text("unit")[i].strip()
            answer = _answer(case, rows.text("metric")[i], unit, float(size[i]), catalog)
            reason = answer if isinstance(answer, str) else None
            predicted[i] = np.nan if isinstance(answer, str) else answer
        refused.append(reason)
    return Predictions({"value": (predicted, value)}, refused)


def case_of(rows: CaseRows, i: int, catalog: Catalog) -> Case | str:
    """A row read, or the reason why it cannot be."""
    words = {name: rows.text(name)[i].lower() for name in ("link", "link_gen", "direction", "tool", "metric", "system")}
    kind = _class_of(words["link"], words["link_gen"])
    if kind is None:
        return f"no class of endpoints for the link {rows.text('link')[i]!r}"
    library = any(word in words["tool"] for word in ("send/recv", "sendrecv", "nccl", "torch", "rccl"))
    both = words["direction"].startswith("bi") or "bidirectional" in f"{words['direction']} {words['tool']}"
    rate = float(rows.numbers("spec_GBs")[i])
    if not rate > 0.0:
        rate = _rate(rows, i, kind, words, catalog) * (2.0 if both else 1.0)
    if not rate > 0.0:
        return "neither the row nor the accelerator states the rate of this link"
    if kind == "c2c":
        rate /= _sharers(rows.text("accelerator")[i], catalog)
    return Case(kind, library, "read" in f"{words['direction']} {words['tool']}", both, rate)


def _class_of(link: str, generation: str) -> str | None:
    text = f"{link} {generation}"
    for pattern, kind in (
        (r"c2c", "c2c"),
        (r"infinity|xgmi|\bif\b", "mesh"),
        (r"inter-?node|roce|ethernet|\befa\b|slingshot|nic\b", "network"),
        (r"infiniband|\bib\b|\bndr\b|\bhdr\b|\bxdr\b", "infiniband"),
        (r"pci", "pcie"),
        (r"nvlink|nvswitch|nv\d+\b", "nvlink"),
    ):
        if re.search(pattern, link) or (re.search(pattern, text) and kind not in ("network", "infiniband")):
            return kind
    return None


def _rate(rows: CaseRows, i: int, kind: str, words: dict[str, str], catalog: Catalog) -> float:
    """Rate of the link by its generation or the accelerator's own facts."""
    if kind == "pcie":
        generation = re.search(r"(?:pcie|gen)\D{0,4}(\d)", f"{words['link_gen']} {words['link']}")
        width = re.search(r"x(\d+)", words["link_gen"])
        lanes = float(width[1]) if width else 16.0
        return PCIE_GTS.get(generation[1] if generation else "", 0.0) * lanes / 8.0
    name = rows.text("accelerator")[i]
    known = catalog.technologies("accelerators")
    facts = known.get(name, {})
    if kind in ("network", "infiniband"):
        return float(gbytes_per_s(facts["nic_rate_gbps"].value)) if "nic_rate_gbps" in facts else 0.0
    return facts["scale_up_rate_gbytes_per_s"].value if "scale_up_rate_gbytes_per_s" in facts else 0.0


def _sharers(accelerator: str, catalog: Catalog) -> float:
    hosts = catalog.technologies("hosts")
    return hosts[accelerator]["accelerators_per_cpu_count"].value if accelerator in hosts else 1.0


def wire_frac(case: Case, message_bytes: float, catalog: Catalog) -> float:
    """What flits, headers and requests leave for such messages."""
    name, payload = CLASSES[case.kind]
    fact = {f: catalog.value("protocols", name, f) for f in (
        "header_bytes", "flit_bytes", "flit_payload_bytes", "framed_flag", "encoding_frac", "control_frac",
    )}  # fmt: skip
    header = fact.pop("header_bytes")
    if case.read and case.kind == "nvlink":
        payload, header = READ_BYTES, header * (2.0 if case.both_ways else 1.0)
    protocol = ProtocolInputs(
        payload_bytes=payload, header_bytes=header, endpoint_ns=0.0, switch_ns=0.0, hops_count=0.0, credit_flag=1.0,
        pfc_flag=0.0, **fact,
    )  # fmt: skip
    return float(message_frac(message_bytes, protocol))


def group_of(case: Case) -> str:
    """Group of fitted constants."""
    wide = "network" if case.kind == "infiniband" else case.kind
    return f"{wide}_library" if case.library and wide in ("nvlink", "network") else wide


def message_us(message_bytes: float, rate_gbytes_per_s: float, fitted: Mapping[str, float]) -> float:
    """Start, transfer, and what a library adds from the size on at which it changes its protocol."""
    half = 1024.0 * fitted.get("handover_kib", 1.0)
    handover = fitted.get("handover_us", 0.0) * message_bytes / (message_bytes + half)
    return fitted["start_us"] + handover + message_bytes / (rate_gbytes_per_s * 1e3)


def _answer(case: Case, metric: str, unit: str, size: float, catalog: Catalog) -> float | str:
    group = group_of(case)
    message = size if size > 0.0 else LARGE_BYTES
    fitted = {name: constant.value for name, constant in catalog.constants["links"][group].items()}
    rate = case.rate_gbytes_per_s * wire_frac(case, message, catalog) * fitted["endpoint_frac"]
    if unit in SECONDS:
        if "start_us" not in fitted:
            return f"no start of a message was measured for {group} links"
        bare = 0.0 if "latency" in metric and not size > 0.0 else message
        return message_us(bare, rate, fitted) * 1e-6 / SECONDS[unit]
    if unit in ("GB/s", "Gb/s", "GBps", "Gbps"):
        return rate * (8.0 if "b" in unit.replace("GB", "") else 1.0)
    return f"no answer in the unit {unit!r}"
