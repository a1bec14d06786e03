"""Flows of small interconnection networks, enumerated: which channels each source loads under a traffic pattern.

Used to replay a flit simulator: channel loads and a fair filling of the channels give the accepted rate, loads and
hops the latency. The closed forms of `codesign.model.fabric.traffic` are tested against these enumerations.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from codesign.units import Array

Flags = NDArray[np.bool_]
Hops = list[tuple[int, ...]]
Path = list[tuple[float, Hops]]  # (share, channels) of the ways one packet may take
LOCAL_CYCLES, GLOBAL_CYCLES = 10.0, 100.0  # dragonfly channels
OUT = -9  # first number of an ejection channel


@dataclass(frozen=True)
class Flows:
    """Load of each source on each channel per unit of injection, and what a path costs."""

    load: Array  # (source, channel)
    random: bool  # packets of one source go several ways, so arrivals at a channel are random
    routers: float  # mean routers on a path
    wire_cycles: float  # mean channel latency of a path
    reach_cycles: Array  # (channel,) latency of each channel

    ejects: Flags  # (channel,) whether the channel leads out of the network

    @property
    def busiest(self) -> float:
        """Largest load of a network channel when every source injects one flit per cycle."""
        inside = self.load.sum(axis=0)[~self.ejects]
        return float(inside.max(initial=0.0))


def _digits(node: int, k: int, n: int) -> list[int]:
    return [node // k**d % k for d in range(n)]


def _number(digits: list[int], k: int) -> int:
    return sum(digit * k**d for d, digit in enumerate(digits))


def destinations(traffic: str, source: int, nodes: int, k: int, n: int) -> Iterator[tuple[float, int]]:
    """Share and destination of the packets of one source.

    Raises:
        KeyError: the pattern is unknown.
    """
    if traffic == "uniform":
        yield from ((1.0 / nodes, d) for d in range(nodes))
    elif traffic == "neighbor":
        yield 1.0, _number([(digit + 1) % k for digit in _digits(source, k, n)], k)
    elif traffic == "transpose":
        bits = (nodes - 1).bit_length()
        half, mask = bits // 2, (1 << bits // 2) - 1
        yield 1.0, (source >> half) & mask | (source & mask) << half
    elif traffic == "bad_dragon":
        group = 2 * k * k  # p routers' nodes: p = k, a = 2 p
        groups = nodes // group
        target = (source // group + 1) % groups
        yield from ((1.0 / group, target * group + d) for d in range(group))
    else:
        raise KeyError(traffic)


def _grid_path(source: int, target: int, k: int, n: int, wrap: bool) -> Path:
    """Dimension order; on a ring the short way, both ways when they are equal."""
    ways: Path = [(1.0, [])]
    here = _digits(source, k, n)
    there = _digits(target, k, n)
    for d in range(n):
        forward = (there[d] - here[d]) % k
        back = (here[d] - there[d]) % k
        if forward == 0:
            continue
        if not wrap:
            options = [(1.0, 1 if there[d] > here[d] else -1, abs(there[d] - here[d]))]
        elif forward == back:
            options = [(0.5, 1, forward), (0.5, -1, back)]
        else:
            options = [(1.0, 1, forward)] if forward < back else [(1.0, -1, back)]
        grown: Path = []
        for share, channels in ways:
            for part, sign, steps in options:
                place = list(here)
                hops: Hops = []
                for _ in range(steps):
                    hops.append((_number(place, k), d, sign))
                    place[d] = (place[d] + sign) % k
                grown.append((share * part, channels + hops))
        ways = grown
        here[d] = there[d]
    return ways


def _tree_path(source: int, target: int, k: int, n: int) -> Path:
    """Up to the nearest common ancestor by a random way, down by the only one; channels of a level are alike.

    A level is one channel of as many lanes as nodes below it: random ways share the lanes evenly.
    """
    height = next(h for h in range(1, n + 1) if source // k**h == target // k**h)
    up: Hops = [(1, level, source // k**level) for level in range(1, height)]
    down: Hops = [(-1, level, target // k**level) for level in range(1, height)]
    return [(1.0, up + down)]


def _flat_router(node: int, k: int, c: int) -> int:
    """Nodes stand on a square grid; each router serves a square of them."""
    side = math.isqrt(c)
    width = k * side
    return node % width // side + node // width // side * k


def _flat_path(source: int, target: int, k: int, n: int, c: int) -> Path:
    """One hop in each dimension that differs, in dimension order."""
    place, there = _digits(_flat_router(source, k, c), k, n), _digits(_flat_router(target, k, c), k, n)
    hops: list[tuple[int, ...]] = []
    for d in range(n):
        if place[d] != there[d]:
            hops.append((_number(place, k), d, there[d]))
            place[d] = there[d]
    return [(1.0, hops)]


def _dragonfly_path(source: int, target: int, p: int) -> Path:
    """Minimal: to the router with the global channel, across, to the destination's router."""
    a, h = 2 * p, p
    groups = a * h + 1
    r, s = source // p, target // p
    g, t = r // a, s // a
    if g == t:
        return [(1.0, [] if r == s else [(0, r, s)])]
    out = g * a + (t - g - 1) % (groups - 1) // h
    into = t * a + (g - t - 1) % (groups - 1) // h
    hops: Hops = [(0, r, out)] if r != out else []
    hops.append((1, g, t))
    if into != s:
        hops.append((0, into, s))
    return [(1.0, hops)]


def _latency(topology: str, channel: tuple[int, ...], k: int) -> float:
    if topology == "torus":
        return 2.0
    if topology == "dragonflynew":
        return GLOBAL_CYCLES if channel[0] == 1 else LOCAL_CYCLES
    if topology == "flatfly":
        router, d, column = channel
        return 2.0 * abs(_digits(router, k, d + 1)[d] - column)
    return 1.0


def _lanes(topology: str, channel: tuple[int, ...], k: int) -> float:
    """Parallel lanes that an enumerated channel stands for."""
    return float(k ** channel[1]) if topology == "fattree" else 1.0


def paths(topology: str, k: int, n: int, c: int) -> Callable[[int, int], Path]:
    """The routing of a topology.

    Raises:
        KeyError: the topology is unknown.
    """
    ways: dict[str, Callable[[int, int], Path]] = {
        "mesh": lambda s, t: _grid_path(s, t, k, n, False),
        "torus": lambda s, t: _grid_path(s, t, k, n, True),
        "fattree": lambda s, t: _tree_path(s, t, k, n),
        "flatfly": lambda s, t: _flat_path(s, t, k, n, c),
        "dragonflynew": lambda s, t: _dragonfly_path(s, t, k),
        "fly": lambda *_: [(1.0, [])],
    }
    return ways[topology]


@cache
def flows(topology: str, k: int, n: int, c: int, nodes: int, traffic: str) -> Flows:
    """Enumerate all packets of a pattern; injection and ejection channels come last."""
    way = paths(topology, k, n, c)
    numbers: dict[tuple[int, ...], int] = {}
    entries: list[tuple[int, int, float]] = []
    routers, wire, ways = 0.0, 0.0, 0
    base = k * math.isqrt(c)  # a concentrated network counts its nodes along each dimension
    for source in range(nodes):
        targets = list(destinations(traffic, source, nodes, base, n))
        ways = max(ways, len(targets))
        for share, target in targets:
            for part, channels in way(source, target):
                routers += share * part * (1 + len(channels)) / nodes
                wire += share * part * sum(_latency(topology, ch, k) for ch in channels) / nodes
                for channel in channels:
                    column = numbers.setdefault(channel, len(numbers))
                    entries.append((source, column, share * part / _lanes(topology, channel, k)))
                entries.append((source, numbers.setdefault((OUT, target), len(numbers)), share * part))
    load = np.zeros((nodes, len(numbers)))
    for source, column, amount in entries:
        load[source, column] += amount
    ejects = np.array([ch[0] == OUT for ch in numbers])
    reach = np.array([0.0 if ch[0] == OUT else _latency(topology, ch, k) for ch in numbers])
    return Flows(load, ways > 1 or topology == "fattree", routers, wire, reach, ejects)


def accepted_rate(load: Array, capacity: Array, injection: float) -> Array:
    """Fair filling: every source's rate grows until a channel it uses is full; a source's packets keep their shares."""
    rate = np.zeros(len(load))
    growing = np.ones(len(load), dtype=bool)
    for _ in range(load.shape[1] + 1):
        used = (rate[:, None] * load).sum(axis=0)
        slope = load[growing].sum(axis=0)
        room = np.where(slope > 1e-12, (capacity - used) / np.maximum(slope, 1e-12), np.inf)
        step = min(float(room.min(initial=np.inf)), injection - float(rate[growing].max(initial=0.0)))
        rate[growing] += max(step, 0.0)
        full = (rate[:, None] * load).sum(axis=0) >= capacity - 1e-9
        growing &= ~(load[:, full] > 1e-12).any(axis=1)
        if not growing.any() or float(rate[growing].max()) >= injection - 1e-12:
            break
    return np.minimum(rate, injection)
