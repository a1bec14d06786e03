"""One link flit by flit against the chain: credits, errors and retry, below and above the bandwidth-delay product.

The flit simulation follows every flit of many messages side by side. A flit leaves when the line is free and its credit
is back; a lost one is sent again after a round trip, and with go-back-N everything behind it too. An event queue with
acknowledgements and credits on the way back checks the simulation itself on three settings.
"""

import heapq
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codesign.model.link.chain import Link, link
from codesign.model.link.example import example_inputs

_spec = importlib.util.spec_from_file_location("link_support", Path(__file__).parent / "support.py")
assert _spec is not None
assert _spec.loader is not None
support: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(support)

FLIT_BYTES, RATE_GBPS, PROCESSING_NS, DETECT_NS = 256.0, 204.8, 10.0, 20.0
FLIT_NS = 8.0 * FLIT_BYTES / RATE_GBPS

#: flits of a message, loss of a flit, one-way ns, credits in flits, links, selective retry
SETTINGS = [
    (32, 1e-3, 100.0, 64, 1, 0), (32, 1e-3, 100.0, 12, 1, 0), (32, 1e-3, 100.0, 6, 1, 0), (128, 1e-3, 100.0, 64, 1, 0),
    (128, 1e-3, 100.0, 12, 1, 0), (8, 1e-3, 300.0, 128, 1, 0), (64, 1e-4, 300.0, 128, 1, 0),
    (64, 1e-4, 300.0, 20, 1, 0),
    (256, 1e-4, 50.0, 64, 1, 0), (256, 1e-4, 50.0, 8, 1, 0), (16, 5e-3, 50.0, 64, 1, 0), (16, 5e-3, 50.0, 6, 1, 0),
    (64, 5e-3, 200.0, 100, 1, 0), (64, 5e-3, 200.0, 30, 1, 0), (1, 4e-3, 100.0, 64, 1, 0), (1, 2e-3, 100.0, 2, 1, 0),
    (64, 1e-6, 100.0, 64, 1, 0), (64, 1e-6, 100.0, 8, 1, 0), (32, 1e-4, 100.0, 64, 8, 0), (32, 1e-4, 100.0, 16, 8, 0),
    (32, 1e-3, 100.0, 64, 1, 1), (128, 1e-3, 100.0, 64, 1, 1), (64, 1e-4, 300.0, 128, 1, 1), (16, 5e-3, 50.0, 64, 1, 1),
]  # fmt: skip


def flit_by_flit(
    lost: NDArray[np.int64], one_way_ns: float, credits_count: int, selective: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(messages, flits) attempts lost before success -> time the last flit is in, and time the line was held."""
    messages, flits = lost.shape
    again = 2.0 * one_way_ns + FLIT_NS + DETECT_NS
    loop = 2.0 * one_way_ns + FLIT_NS + PROCESSING_NS
    sent = np.zeros((messages, flits))
    free = np.zeros(messages)
    done = np.zeros(messages)
    for flit in range(flits):
        start = free
        if flit >= credits_count:
            start = np.maximum(start, sent[:, flit - credits_count] + loop)
        if selective:
            sent[:, flit] = start
            free = start + FLIT_NS * (1 + lost[:, flit])
            done = np.maximum(done, start + lost[:, flit] * again + FLIT_NS + one_way_ns)
        else:
            sent[:, flit] = start + lost[:, flit] * again
            free = sent[:, flit] + FLIT_NS
            done = free + one_way_ns
    return done, free


def by_events(lost: list[int], one_way_ns: float, credits_count: int) -> float:
    """One message with go-back-N by an event queue: flits, credits and refusals travel; when the last flit is in."""
    events: list[tuple[float, int, str, int]] = []
    left, sent, credited, expected, clock_free = list(lost), 0, 0, 0, 0.0
    refused = -1
    heapq.heappush(events, (0.0, 0, "send", 0))
    order = 1
    while events:
        now, _, what, flit = heapq.heappop(events)
        if what == "send":
            if now + 1e-9 < clock_free or sent >= len(lost) or sent - credited >= credits_count:
                continue
            clock_free = now + FLIT_NS
            heapq.heappush(events, (clock_free + one_way_ns, order, "arrive", sent))
            sent += 1
            heapq.heappush(events, (clock_free, order + 1, "send", 0))
        elif what == "arrive" and flit == expected:
            if left[flit] > 0:
                left[flit] -= 1
                if refused != flit or left[flit] >= 0:
                    heapq.heappush(events, (now + one_way_ns + DETECT_NS, order, "refuse", flit))
                    refused, expected = flit, -2 - flit  # ignore what follows until it is sent again
            else:
                expected = flit + 1
                heapq.heappush(events, (now + one_way_ns + PROCESSING_NS, order, "credit", flit + 1))
                if expected == len(lost):
                    return now
        elif what == "credit":
            credited = max(credited, flit)
            heapq.heappush(events, (max(now, clock_free), order, "send", 0))
        elif what == "refuse":
            sent, expected = flit, flit
            clock_free = min(clock_free, now)
            heapq.heappush(events, (now, order, "send", 0))
        order += 2
    raise AssertionError("the message never arrived")


def chain_of(setting: tuple[int, float, float, int, int, int]) -> Link:
    """The same link through the model."""
    flits, loss, one_way, credits_count, links, selective = setting
    inputs = support.changed(
        example_inputs(),
        serdes__lane_rate_gbps=RATE_GBPS, serdes__lanes_count=1.0, serdes__phy_ns=0.0, serdes__propagation_prob=0.0,
        medium__length_m=one_way / 5.0, medium__own_ber=loss / (8.0 * FLIT_BYTES), medium__common_fit=0.0,
        medium__lane_fit=0.0, medium__flap_fit=0.0, channel__cable_m=0.0, channel__board_mm=0.0,
        serdes__implementation_db=-10.0,
        fec__symbols_count=1.0, fec__data_symbols_count=1.0, fec__correctable_count=0.0, fec__symbol_size_bits=8.0,
        fec__slices_count=8.0, fec__inner_block_count=1.0, fec__inner_data_count=1.0,
        fec__processing_ns=-8.0 / RATE_GBPS,
        serdes__symbol_bits=1.0, serdes__levels_count=2.0,
        protocol__payload_bytes=1e9, protocol__header_bytes=0.0, protocol__flit_bytes=FLIT_BYTES,
        protocol__flit_payload_bytes=FLIT_BYTES, protocol__control_frac=0.0, protocol__endpoint_ns=0.0,
        protocol__hops_count=0.0,
        retry__go_back_flag=1.0 - selective, retry__selective_flag=float(selective), retry__detect_ns=DETECT_NS,
        retry__replay_bytes=1e9, flow__buffer_bytes=credits_count * FLIT_BYTES, flow__channels_count=1.0,
        flow__credit_processing_ns=PROCESSING_NS, load__message_bytes=flits * FLIT_BYTES,
        load__parallel_links_count=float(links), load__offered_frac=1e-9,
    )  # fmt: skip
    return link(inputs)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_chain_agrees_with_the_flits(setting: tuple[int, float, float, int, int, int]) -> None:
    flits, loss, one_way, credits_count, links, selective = setting
    generator = np.random.default_rng(11)
    messages = 200000 // max(1, flits // 16) // links * links
    model = chain_of(setting)
    assert model.coding.flit_loss_prob == pytest.approx(loss, rel=0.02)

    lost = generator.geometric(1.0 - loss, (messages, flits)) - 1
    done, _ = flit_by_flit(lost, one_way, credits_count, selective)
    worst = done.reshape(-1, links).max(axis=1)
    stream = generator.geometric(1.0 - loss, (400, 2000)) - 1
    _, held = flit_by_flit(stream, one_way, credits_count, selective)

    assert model.goodput_gbps / RATE_GBPS == pytest.approx(2000 * FLIT_NS / held.mean(), rel=0.01)
    assert model.transfer.p999_ns == pytest.approx(float(np.quantile(worst, 0.999)), rel=0.15)


@pytest.mark.parametrize("setting", [SETTINGS[1], SETTINGS[10], SETTINGS[13]], ids=str)
def test_the_flit_simulation_agrees_with_an_event_queue(setting: tuple[int, float, float, int, int, int]) -> None:
    flits, _, one_way, credits_count, _, _ = setting
    lost = np.random.default_rng(3).geometric(0.97, (40, flits)) - 1

    done, _ = flit_by_flit(lost, one_way, credits_count, 0)
    events = [by_events(row.tolist(), one_way, credits_count) for row in lost]

    assert np.allclose(done, events)
