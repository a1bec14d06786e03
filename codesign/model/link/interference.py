"""What an equaliser leaves of a symbol's followers: the smearing of a lossy line, and the echoes of its steps.

Every number is fitted to points of a public implementation of the operating margin (`cases/fit_channel.py`); the forms
are those of the physics: an echo needs two reflections and crosses twice more what lies between them.
"""

import numpy as np

from codesign.units import Numeric, empirical

_LN10 = float(np.log(10.0))


@empirical("pychopmarg.csv")
def dispersion_ratio(
    smear_db: Numeric,
    line_db: Numeric,
    taps_count: Numeric,
    reference_loss_db: Numeric,
    uncorrected_ratio: Numeric,
    tail_ratio: Numeric,
    dispersion_exponent_ratio: Numeric,
    memory_count: Numeric,
) -> Numeric:
    """Intersymbol interference that the smearing of a lossy channel leaves: grows with the loss, falls with the taps.

    A lossier channel spreads a symbol over more of its followers; each tap removes one. The skin effect of a long line
    drags a tail over hundreds of symbols that no number of taps removes.

    Args:
        smear_db: Insertion loss at half the symbol rate, that of packages and plugs weighted more. [dB], >= 0
        line_db: Loss of cable and board between the packages at half the symbol rate. [dB], >= 0
        taps_count: Taps of the receiver's equaliser. [count], >= 0
        reference_loss_db: Loss at which the uncorrected ratio holds. [dB], > 0
        uncorrected_ratio: Interference over signal without taps at that loss. [1], > 0
        tail_ratio: Interference over signal that is left by any taps behind a line of that loss. [1]
        dispersion_exponent_ratio: Exponent of the loss. [1]
        memory_count: Taps that cut the interference by e. [count], > 0

    Returns:
        Interference over mean signal power. [1]

    Source:
        ieee-802.3-annex-93a: sigma_ISI; the dependence on loss and taps is our surrogate, fitted.

    >>> round(float(dispersion_ratio(40.0, 20.0, 0.0, 20.0, 0.01, 0.002, 2.0, 4.0)), 6)
    0.042
    """
    power = dispersion_exponent_ratio * np.log(smear_db / reference_loss_db + 1e-9)
    tail = dispersion_exponent_ratio * np.log(line_db / reference_loss_db + 1e-9)
    return uncorrected_ratio * np.exp(power - taps_count / memory_count) + tail_ratio * np.exp(tail)


def mismatch_ratio(
    connectors_count: Numeric, reflection_ratio: Numeric, scale_ratio: Numeric, connector_weight_ratio: Numeric
) -> Numeric:
    """What the plugs add to the steps in impedance that a lane has without them.

    A plug is a small shunt capacitance, so that the amplitude it reflects grows with frequency.

    Args:
        connectors_count: Mated connectors on the way. [count], >= 0
        reflection_ratio: Amplitude that one reflects at its rated frequency. [1], in [0, 1]
        scale_ratio: Half the symbol rate over that frequency. [1], > 0
        connector_weight_ratio: What a whole reflection weighs against the rest of the lane, fitted. [1]

    Returns:
        Reflected power over that of a lane without plugs. [1]

    Source:
        definition: reflected power is the square of the amplitude; powers of separate steps add.

    >>> round(mismatch_ratio(2.0, 0.1, 2.0, 25.0), 6)
    3.0
    """
    amplitude = reflection_ratio * scale_ratio
    return 1.0 + connector_weight_ratio * connectors_count * amplitude * amplitude


@empirical("pychopmarg.csv")
def line_echo_ratio(
    mismatch_ratio: Numeric,
    line_db: Numeric,
    taps_count: Numeric,
    near_memory_count: Numeric,
    far_weight_ratio: Numeric,
    far_loss_ratio: Numeric,
) -> Numeric:
    """Echoes of the line and its plugs: near ones that the taps reach, and far ones that only loss weakens.

    What a step sends back at once falls on the next few symbols. What runs to the other end of the line and back
    comes hundreds of symbols late, beyond any equaliser, and has crossed the line twice more: a short line rings.

    Args:
        mismatch_ratio: Reflected power over that of a lane without plugs. [1]
        line_db: Loss of cable and board between the packages at half the symbol rate. [dB], >= 0
        taps_count: Taps of the receiver's equaliser. [count], >= 0
        near_memory_count: Taps that cut the near echoes by e. [count], > 0
        far_weight_ratio: Far echo of a line without loss over near echo without taps. [1]
        far_loss_ratio: Loss that the far echo sees over that at half the symbol rate. [1]

    Returns:
        Echo over the near echo of a lane without plugs and taps. [1]

    Source:
        ieee-802.3-annex-93a: sigma_ISI; an echo crosses the line twice more than the signal; weights are fitted.

    >>> round(float(line_echo_ratio(2.0, 10.0, 0.0, 4.0, 0.5, 0.5)), 6)
    2.1
    """
    far = far_weight_ratio * np.exp(line_db * (-2.0 * _LN10 / 10.0) * far_loss_ratio)
    return mismatch_ratio * (np.exp(-taps_count / near_memory_count) + far)


@empirical("pychopmarg.csv")
def package_echo_ratio(
    sections_count: Numeric,
    end_db: Numeric,
    delay_ui: Numeric,
    taps_count: Numeric,
    section_weight_ratio: Numeric,
    section_loss_ratio: Numeric,
    section_reach_ratio: Numeric,
) -> Numeric:
    """Echoes between the die and the sections of its package: weakened by its loss, gone where the taps reach them.

    Args:
        sections_count: Line sections of the packages on the way, each of its own impedance. [count], >= 0
        end_db: Loss of the package of one end at half the symbol rate. [dB], >= 0
        delay_ui: Time to the far side of that package and back. [UI], >= 0
        taps_count: Taps of the receiver's equaliser. [count], >= 0
        section_weight_ratio: Echo of a section over the near echo of the line without taps. [1]
        section_loss_ratio: Loss that the echo sees over that at half the symbol rate. [1]
        section_reach_ratio: Taps over delay at which half the echo is gone. [1], > 0

    Returns:
        Echo over the near echo of a lane without plugs and taps. [1]

    Source:
        ieee-802.3-annex-93a: sigma_ISI; an echo crosses the package twice more than the signal; weights are fitted.

    >>> round(float(package_echo_ratio(4.0, 0.0, 10.0, 10.0, 0.05, 0.5, 1.0)), 6)
    0.1
    """
    reach = section_reach_ratio * delay_ui
    left = reach * reach / (reach * reach + taps_count * taps_count + 1e-9)
    return section_weight_ratio * sections_count * left * np.exp(end_db * (-2.0 * _LN10 / 10.0) * section_loss_ratio)


@empirical("pychopmarg.csv")
def echo_ratio(
    scale_ratio: Numeric, steps_ratio: Numeric, reference_echo_ratio: Numeric, echo_exponent_ratio: Numeric
) -> Numeric:
    """Intersymbol interference that reflections leave: grows with frequency, as the capacitance of every step does.

    Args:
        scale_ratio: Half the symbol rate over the frequency at which the reference echo holds. [1], > 0
        steps_ratio: Echoes over the near echo of a lane without plugs and taps. [1]
        reference_echo_ratio: That near echo over signal at the reference frequency. [1]
        echo_exponent_ratio: Exponent of the frequency. [1]

    Returns:
        Echo over mean signal power. [1]

    Source:
        ieee-802.3-annex-93a: sigma_ISI; the dependence on frequency is our surrogate, fitted.

    >>> round(float(echo_ratio(2.0, 3.0, 0.001, 1.0)), 6)
    0.006
    """
    return reference_echo_ratio * steps_ratio * np.exp(echo_exponent_ratio * np.log(scale_ratio))
