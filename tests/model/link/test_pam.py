"""Error ratios of PAM against printed and exact values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codesign.model.link.pam import gray_ber, nearest_neighbour_ber, required_snr_db, symbol_error_log10_ratio

TABLE = {4: (2.0, 18.23), 6: (2.5, 21.81), 8: (3.0, 24.30)}


@pytest.mark.published(
    source="chen-2024-designcon-425g",
    where="table 4, slicer SNR at a bit error ratio of 1e-4",
    says="PAM4 18.23, PAM6 21.81, PAM8 24.30 dB",
)
@pytest.mark.parametrize("levels", TABLE)
def test_the_slicer_needs_the_printed_signal_to_noise_ratio(levels: int) -> None:
    bits, printed_db = TABLE[levels]

    assert required_snr_db(1e-4, levels, bits) == pytest.approx(printed_db, abs=0.03)  # the table rounds its bits


@pytest.mark.parametrize("levels", [2, 4, 6, 8])
@given(target=st.floats(1e-200, 1e-2))
def test_the_inverse_undoes_the_error_ratio(levels: int, target: float) -> None:
    bits = float(np.log2(levels))

    snr_db = required_snr_db(target, levels, bits)

    assert nearest_neighbour_ber(snr_db, levels, bits) == pytest.approx(target, rel=1e-8)


@pytest.mark.parametrize("levels", [2, 4, 8])
def test_slips_of_two_levels_do_not_matter_where_errors_are_rare(levels: int) -> None:
    snr_db = required_snr_db(1e-3, levels, np.log2(levels))

    assert gray_ber(snr_db, levels) == pytest.approx(1e-3, rel=1e-6)


def test_a_very_good_line_has_a_logarithm_where_the_ratio_itself_is_gone() -> None:
    assert symbol_error_log10_ratio(60.0, 2.0) < -200000.0
    assert nearest_neighbour_ber(60.0, 2.0, 1.0) == 0.0


@given(low=st.floats(0.0, 40.0), more=st.floats(0.01, 10.0), levels=st.sampled_from([2.0, 4.0, 6.0, 8.0]))
def test_more_signal_never_gives_more_errors(low: float, more: float, levels: float) -> None:
    assert symbol_error_log10_ratio(low + more, levels) < symbol_error_log10_ratio(low, levels)
    assert gray_ber(low + more, levels) <= gray_ber(low, levels)


@given(snr_db=st.floats(5.0, 40.0))
def test_more_levels_at_one_signal_to_noise_ratio_give_more_errors(snr_db: float) -> None:
    two, four, eight = (symbol_error_log10_ratio(snr_db, m) for m in (2.0, 4.0, 8.0))

    assert two < four < eight
