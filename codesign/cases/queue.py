"""Single queues with exact answers: random arrivals, several service laws, finite buffers; service time is 1."""

import re

import numpy as np
from scipy.special import gammainc

from codesign.cases.rows import CaseRows, Predictions
from codesign.catalog import Catalog
from codesign.model.link.queueing import exponential_loss_prob, mean_wait_ns, slotted_wait_ns, tail_wait_ns
from codesign.units import Array

ENDLESS = ("M/D/1", "M/M/1", "M/G/1", "Geo/D/1")
FINITE = ("M/D/1/K", "M/M/1/K")
MOST_PLACES_COUNT = 10_000
BEYOND = 600  #: states after the buffer that are added up for losses too small to be a complement


def predict(rows: CaseRows, catalog: Catalog) -> Predictions:
    """Rows of kind ``queue``: mean wait for all, quantiles for M/D/1 and M/M/1, loss for finite buffers."""
    del catalog
    names, load = rows.text("model"), rows.numbers("offered_load_rho")
    variation, places = rows.numbers("service_cv2"), rows.numbers("K_places")
    wait, quantile, loss = (np.full(len(rows), np.nan) for _ in range(3))
    refused: list[str | None] = []
    for i, name in enumerate(names):
        refused.append(_refusal(name, load[i], places[i]))
        if refused[-1] is None and name in ENDLESS:
            slots = _slots(rows.text("service_law")[i]) if name == "Geo/D/1" else 0.0
            wait[i], quantile[i] = _endless(name, load[i], variation[i], slots)
        elif refused[-1] is None:
            loss[i], wait[i] = _finite(name, load[i], int(places[i]))
    return Predictions(
        {
            "mean_wait": (wait, rows.numbers("mean_wait")),
            "wait_p99": (quantile, rows.numbers("wait_p99")),
            "loss_prob": (loss, rows.numbers("loss_prob")),
        },
        refused,
    )


def _refusal(name: str, load: float, places: float) -> str | None:
    if name not in ENDLESS + FINITE:
        return f"no law for queue {name!r}"
    if not load > 0.0:
        return "no offered load"
    if name in ENDLESS:
        return None if load < 1.0 else "an endless queue at or above full load has no wait"
    if not (np.isfinite(places) and places >= 1.0):
        return "no number of places"
    return None if places <= MOST_PLACES_COUNT else f"states are added one by one up to {MOST_PLACES_COUNT} places"


def _slots(law: str) -> float:
    found = re.search(r"(\d+)_slots", law)
    return float(found[1]) if found else 1.0


def _endless(name: str, load: float, variation: float, slots: float) -> tuple[float, float]:
    if name == "Geo/D/1":
        return float(slotted_wait_ns(load, 1.0, slots)), np.nan
    fixed = {"M/D/1": 0.0, "M/M/1": 1.0}.get(name, variation)
    mean = float(mean_wait_ns(load, 1.0, fixed))
    if name == "M/D/1":
        return mean, _fixed_quantile(load, 0.01)
    return mean, float(tail_wait_ns(mean, load, 0.01)) if name == "M/M/1" else np.nan


def departure_probs(load: float, count: int) -> Array:
    """Probability of each number left behind in an M/D/1 queue, up to a factor for loads of one and above.

    From the crossings of each level, so that every term is positive and small ones keep their digits.
    """
    above = gammainc(np.arange(1, count + 2, dtype=float), load)  # P(more than m arrivals in a service)
    state = np.zeros(count + 1)
    state[0] = 1.0 - load if load < 1.0 else 1.0
    for level in range(count):
        crossing = state[0] * above[level] + float(np.sum(state[1 : level + 1] * above[level:0:-1]))
        state[level + 1] = crossing * np.exp(load)
    return state


def _fixed_quantile(load: float, tail: float) -> float:
    """Wait of M/D/1 exceeded with a probability (Franx's positive sum, bisection)."""
    if tail >= load:
        return 0.0
    high = float(tail_wait_ns(float(mean_wait_ns(load, 1.0, 0.0)), load, tail)) * 2.0 + 5.0
    below = np.cumsum(departure_probs(load, int(high) + 5))[1:]  # waiting, the one in service apart

    def within(wait: float) -> float:
        whole = int(np.floor(wait)) + 1
        mean = load * (whole - wait)
        total, term = 0.0, np.exp(-mean)
        for k in range(whole):
            total += term * below[whole - 1 - k]
            term *= mean / (k + 1.0)
        return float(total)

    low = 0.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if within(middle) < 1.0 - tail else (low, middle)
    return 0.5 * (low + high)


def _finite(name: str, load: float, places: int) -> tuple[float, float]:
    """Loss and mean wait of those who enter."""
    if name == "M/M/1/K":
        loss = float(exponential_loss_prob(load, places))
        weights = load ** np.arange(places + 1)
        present = float(np.sum(np.arange(places + 1) * weights) / np.sum(weights))
    else:
        state = departure_probs(load, places + BEYOND if load < 1.0 else places)
        inside = state[:places] / np.sum(state[:places])
        if load < 1.0:
            beyond = 1.0 - float(np.sum(state[:places]))
            beyond = float(np.sum(state[places:])) if beyond < 1e-6 else beyond
            loss = (1.0 - load) * beyond / (1.0 - load * beyond)
        else:
            loss = 1.0 - 1.0 / (float(inside[0]) + load)
        present = float(np.sum(np.arange(places) * inside)) * (1.0 - loss) + places * loss
    served = load * (1.0 - loss)
    return loss, present / served - 1.0
