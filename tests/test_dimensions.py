"""Dimensional analysis of the physics, with pint as a test-only dependency.

Names promise units; here each law is called with real quantities in those units and must hand back the dimension its
own name promises. The registry is our own because pint's default one treats a bit as a pure number, so it cannot miss a
missing byte. Pint checks dimensions; the doctests and the published numbers check magnitudes.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pint
import pytest

from codesign.units import SUFFIXES, unit_of
from tests.test_conventions import PLAIN, label

PINT = {
    "Gb/s": "bit/second",
    "ns": "second",
    "byte": "bit",
    "bit": "bit",
    "pJ/bit": "joule/bit",
    "pJ": "joule",
    "W": "joule/second",
    "mm2": "meter**2",
    "mm": "meter",
    "USD": "usd",
    "count": "",
    "1": "",
    "dB": "",
    "dB/m": "1/meter",
    "dB/mm": "1/meter",
    "GHz": "1/second",
    "m": "meter",
    "Gflop/s": "flop/second",
    "flop": "flop",
    "pJ/flop": "joule/flop",
    "byte/ns": "bit/second",
    "byte/mm": "bit/meter",
    "Gb/s/mm": "bit/second/meter",
    "W/mm2": "joule/second/meter**2",
    "1/ns": "1/second",
    "1/mm2": "1/meter**2",
    "FIT": "1/second",
    "Mtransistor/mm2": "1/meter**2",
    "USD/mm2": "usd/meter**2",
    "USD/W": "usd*second/joule",
    "USD/W/year": "usd/joule",
    "USD/m": "usd/meter",
    "1/cm2": "1/meter**2",
    "USD/GB": "usd/bit",
    "USD/kWh": "usd/joule",
    "USD/h": "usd/second",
    "USD/year": "usd/second",
    "USD/Mtoken": "usd/token",
    "USD/(Gb/s)": "usd*second/bit",
    "token/s": "token/second",
    "1/year": "1/second",
    "h": "second",
    "year": "second",
    "degC": "kelvin",
    "us": "second",
    "ms": "second",
    "s": "second",
    "GB": "bit",
    "MB": "bit",
    "KiB": "bit",
    "GB/s": "bit/second",
    "TB/s": "bit/second",
    "Tflop/s": "flop/second",
    "MHz": "1/second",
    "GBd": "1/second",
    "J": "joule",
    "kW": "joule/second",
    "kWh": "joule",
    "%": "",
    "um": "meter",
    "um2": "meter**2",
    "pJ/byte": "joule/bit",
    "mm2/MB": "meter**2/bit",
    "pJ/mm2": "joule/meter**2",
    "ns/byte^0.5": "second/bit**0.5",
    "W/MB": "joule/second/bit",
    "W/(Gb/s)": "joule/bit",
    "ns/m": "second/meter",
    "dB/in": "1/meter",
    "J/token": "joule/token",
    "byte/token": "bit/token",
    "flop/token": "flop/token",
    "1/mm": "1/meter",
    "ns/mm": "second/meter",
    "ns^0.5/mm": "second**0.5/meter",
    "UI": "",
    "V": "volt",
    "V2/GHz": "volt**2*second",
    "mm2/(Tb/s)": "meter**2*second/bit",
    "nm": "meter",
}
BASES = ("second = [time]", "bit = [information]", "joule = [energy]", "meter = [length]", "usd = [money]",
         "token = [token]", "volt = [voltage]", "kelvin = [temperature]", "flop = []")  # fmt: skip
UNITS: pint.UnitRegistry[Any] = pint.UnitRegistry(None)
for base in BASES:
    UNITS.define(base)


def has_dimensions(function: Callable[..., Any]) -> bool:
    """A law of pure numbers (a probability of probabilities) has nothing to check, and may use special functions."""
    names = [function.__name__, *inspect.signature(function).parameters]
    return any(PINT.get(str(unit_of(name)), "unknown") for name in names)


EXACT = [function for function in PLAIN if not hasattr(function, "empirical_rows") and has_dimensions(function)]


def test_every_unit_has_a_dimension() -> None:
    assert set(SUFFIXES.values()) <= set(PINT)


@pytest.mark.parametrize("function", EXACT, ids=label)
def test_the_equation_has_the_dimension_its_name_promises(function: Callable[..., Any]) -> None:
    arguments = {
        name: UNITS.Quantity(np.array([0.5 if unit_of(name) == "1" else 2.0]), PINT[str(unit_of(name))])
        for name in inspect.signature(function).parameters
    }

    result = function(**arguments)

    wanted = PINT[str(unit_of(function.__name__))]
    dimension = result.dimensionality if isinstance(result, pint.Quantity) else UNITS.Quantity(1.0, "").dimensionality
    assert dimension == UNITS.Quantity(1.0, wanted).dimensionality
