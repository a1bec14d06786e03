"""From a die's area to the price of a die that has passed its test, and what a design costs before the first wafer."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc

from codesign.columns import freeze
from codesign.units import Numeric


@dataclass(frozen=True, slots=True, eq=False)
class DieInputs:
    """One kind of die: its area, its wafer, its defects and how much of it can be repaired or switched off."""

    die_area_mm2: Numeric
    wafer_usd: Numeric
    usable_radius_mm: Numeric
    scribe_mm: Numeric
    defects_per_mm2: Numeric
    clustering_count: Numeric
    critical_frac: Numeric
    spare_cores_count: Numeric
    test_frac: Numeric
    coverage_frac: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Die:
    """What one tested die costs, and how often a die that passed its test is bad all the same."""

    per_wafer_count: Numeric
    sellable_prob: Numeric
    silicon_usd: Numeric
    test_usd: Numeric
    escape_prob: Numeric

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, slots=True, eq=False)
class Programme:
    """A product as its maker pays for it: once before the first unit, and again for every unit."""

    nre_usd: Numeric
    unit_usd: Numeric

    def __post_init__(self) -> None:
        freeze(self)


def dies_per_wafer_count(die_area_mm2: Numeric, usable_radius_mm: Numeric, scribe_mm: Numeric) -> Numeric:
    """Whole square dies on a round wafer: its area over the die's, less the dies that the edge cuts.

    The edge term is a fit for dies much smaller than the wafer; beyond about a tenth of the wafer it cuts too much
    (see carriers_per_wafer_count). A die larger than the wafer still counts as one: the reticle rule refuses it.

    Args:
        die_area_mm2: Area of the die without its scribe line. [mm2], >= 0
        usable_radius_mm: Wafer radius less edge exclusion. [mm], > 0
        scribe_mm: Width of the saw street. [mm], > 0

    Returns:
        Candidate dies per wafer, good and bad. [count]

    Source:
        chiplet-actuary-2022: dies per wafer, 0.2 mm scribe and 5 mm edge exclusion in parameter.ini.

    >>> round(float(dies_per_wafer_count(814.0, 145.0, 0.2)), 3)
    57.596
    """
    pitch_mm = np.sqrt(die_area_mm2) + scribe_mm
    radii_count = usable_radius_mm / pitch_mm
    whole_count: Numeric = np.maximum(np.pi * radii_count * radii_count - np.sqrt(2.0) * np.pi * radii_count, 1.0)
    return whole_count


def carriers_per_wafer_count(carrier_area_mm2: Numeric, usable_radius_mm: Numeric, scribe_mm: Numeric) -> Numeric:
    """Whole square interposers on a round wafer, for parts so large that most of them meet the edge.

    The exponential is the law whose first terms are the small-die count; unlike that one it stays positive. It gives
    the 28 to 29 and the 16 packages per wafer that are reported for interposers of 2.0 and 3.3 reticles.

    Args:
        carrier_area_mm2: Area of one carrier. [mm2], >= 0
        usable_radius_mm: Wafer radius less edge exclusion. [mm], > 0
        scribe_mm: Width of the saw street. [mm], > 0

    Returns:
        Carriers per wafer, good and bad. [count]

    Source:
        ferris-prabhu-1989: chips per wafer, exponential edge loss.

    >>> round(float(carriers_per_wafer_count(1694.0, 145.0, 0.2)), 1)
    29.0
    """
    pitch_mm = np.sqrt(carrier_area_mm2) + scribe_mm
    radii_count = usable_radius_mm / pitch_mm
    return np.maximum(np.pi * radii_count * radii_count * np.exp(-1.0 / radii_count), 1.0)


def perfect_die_prob(die_area_mm2: Numeric, defects_per_mm2: Numeric, clustering_count: Numeric) -> Numeric:
    """Chance that a die has no defect at all, when defects cluster (negative binomial).

    Large clustering is the Poisson yield, one is Seeds' yield. No systematic or parametric loss.

    Args:
        die_area_mm2: Area of the die. [mm2], >= 0
        defects_per_mm2: Killing defects per area. [1/mm2], >= 0
        clustering_count: Shape of the distribution over dies, small when defects come in clusters. [count], > 0

    Returns:
        Yield without any repair. [1]

    Source:
        stapper-1983: negative binomial yield.

    >>> round(perfect_die_prob(814.0, 0.001, 10.0), 5)
    0.45723
    """
    return (1.0 + die_area_mm2 * defects_per_mm2 / clustering_count) ** (-clustering_count)


def sellable_prob(die: DieInputs) -> Numeric:
    """Chance that a die can be sold: no defect in its critical part, and no more of them elsewhere than it has spares.

    Exact for clustered defects: given no critical defect, the count elsewhere is again negative binomial, and its
    distribution function is an incomplete beta function. Each defect is taken to cost one core, so two in one core
    are counted twice (a little too strict). With no spares this is the yield of the whole die.

    Args:
        die: Area, defects, critical share and spare cores.

    Returns:
        Share of dies that pass as the product, cores switched off included. [1]

    Source:
        stapper-1983: negative binomial yield with fault tolerance, as a mixture over the defect density.

    >>> h100 = DieInputs(814.0, 13400.0, 145.0, 0.2, 0.001, 10.0, 0.5, 12.0, 0.0, 1.0)
    >>> round(float(sellable_prob(h100)), 3)
    0.671
    """
    faults_count = die.die_area_mm2 * die.defects_per_mm2
    critical_count = faults_count * die.critical_frac
    spared_count = faults_count * (1.0 - die.critical_frac)
    untouched = die.clustering_count + critical_count
    clean = (1.0 + critical_count / die.clustering_count) ** (-die.clustering_count)
    enough: Numeric = betainc(die.clustering_count, die.spare_cores_count + 1.0, untouched / (untouched + spared_count))
    return clean * enough


def escape_prob(sellable_prob: Numeric, coverage_frac: Numeric) -> Numeric:
    """Chance that a die which passed its wafer test is bad: the fewer faults a test sees, the more slip through.

    Assumes that faults on a die are independent and equally likely, so it is an upper bound for clustered ones.

    Args:
        sellable_prob: Yield before the test. [1], 0 to 1
        coverage_frac: Share of faults that the test can see. [1], 0 to 1

    Returns:
        Defect level of the tested dies. [1]

    Source:
        williams-brown-1981: DL = 1 - Y^(1 - T).

    >>> escape_prob(0.8, 1.0)
    0.0
    """
    return 1.0 - sellable_prob ** (1.0 - coverage_frac)


def die(inputs: DieInputs) -> Die:
    """One kind of die, from its area to the cost of a tested one.

    A share of the wafer's cost is spent on testing every candidate; the good ones carry the cost of all.

    Args:
        inputs: Area, wafer, defects, repair and test of this die.

    Source:
        chiplet-actuary-2022: cost of a known good die.

    >>> round(float(die(DieInputs(814.0, 13400.0, 145.0, 0.2, 0.001, 10.0, 0.2, 12.0, 0.0, 1.0)).silicon_usd))
    273
    """
    per_wafer_count = dies_per_wafer_count(inputs.die_area_mm2, inputs.usable_radius_mm, inputs.scribe_mm)
    sellable = sellable_prob(inputs)
    silicon_usd = inputs.wafer_usd / per_wafer_count / sellable
    return Die(
        per_wafer_count=per_wafer_count,
        sellable_prob=sellable,
        silicon_usd=silicon_usd,
        test_usd=silicon_usd * inputs.test_frac,
        escape_prob=escape_prob(sellable, inputs.coverage_frac),
    )


def nre_share_usd(design_usd: Numeric, masks_usd: Numeric, licences_usd: Numeric, volume_count: Numeric) -> Numeric:
    """What every unit carries of the money spent before the first one: design, masks and licensed IP.

    Args:
        design_usd: Engineering of the chips. [USD], >= 0
        masks_usd: Mask sets of all dies. [USD], >= 0
        licences_usd: Licences of SerDes, memory PHY and other IP. [USD], >= 0
        volume_count: Units over the life of the product. [count], >= 1

    Returns:
        One unit's share. [USD]

    Source:
        definition: total over volume.

    >>> nre_share_usd(542e6, 15e6, 43e6, 1e6)
    600.0
    """
    return (design_usd + masks_usd + licences_usd) / volume_count


def break_even_count(older: Programme, newer: Programme) -> Numeric:
    """Units after which the programme that is dearer to start and cheaper to build has paid for itself.

    When the newer one saves nothing per unit it never pays: the answer is then a billion units, the largest volume we
    speak of. When it is also no dearer to start it pays from the first unit.

    Args:
        older: The generation that ships today.
        newer: The generation that would replace it.

    Returns:
        Volume at which both have cost the same, none to a billion. [count]

    Source:
        definition: difference before the first unit over the saving per unit.

    >>> float(break_even_count(Programme(6e6, 130.0), Programme(15e6, 100.0)))
    300000.0
    """
    step_usd = np.maximum(newer.nre_usd - older.nre_usd, 0.0)
    saving_usd = np.maximum(older.unit_usd - newer.unit_usd, 0.0)
    least_usd = np.maximum(step_usd, 1e-9) / 1e9  # a smaller saving would need more than a billion units
    return np.where(step_usd > 0.0, step_usd / np.maximum(saving_usd, least_usd), 0.0)
