"""Fit head-of-line blocking: Karol's table by ports, simulated crossbars by virtual channels."""

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.rows import read_rows
from codesign.catalog import Catalog
from codesign.model.link.buffer import head_of_line_frac
from codesign.resources import case_data
from codesign.units import Array

#: saturation throughput of an input-queued switch, Karol 1987
KAROL = {1: 1.0, 2: 0.75, 3: 0.6825, 4: 0.6553, 5: 0.6399, 6: 0.6302, 7: 0.6234, 8: 0.6184, 16: 0.6013, 32: 0.5930,
         1000000: 0.5858}  # fmt: skip


def fit(catalog: Catalog) -> dict[str, dict[str, float]]:
    """Two constants by ports, then one by channels on crossbars whose packets fit a channel's buffer."""
    del catalog
    ports, karol = np.array(list(KAROL), dtype=float), np.array(list(KAROL.values()))

    def by_ports(z: Array) -> Array:
        error: Array = np.asarray(head_of_line_frac(ports, 1.0, z[0], z[1], 0.0)) - karol
        return error

    few, exponent = least_squares(by_ports, [0.75, 1.1]).x
    rows = next(kind for kind in read_rows(case_data() / "reference" / "booksim_vc.csv") if kind.kind == "booksim_vc")
    chosen = [i for i, sweep in enumerate(rows.text("sweep")) if sweep == "c1_xbar_hol"]
    rows = rows.pick(chosen)
    fits = (rows.numbers("packet_size") <= rows.numbers("vc_buf_size")) & (rows.numbers("num_vcs") > 1.0)
    fits &= rows.numbers("k") <= 16.0  # the largest switch was not run to its steady state
    channels, size = rows.numbers("num_vcs")[fits], rows.numbers("k")[fits]
    measured = rows.numbers("accepted_flit_rate")[fits]

    def by_channels(z: Array) -> Array:
        error: Array = np.asarray(head_of_line_frac(size, channels, few, exponent, z[0])) - measured
        return error

    answer = least_squares(by_channels, [0.2], loss="soft_l1", f_scale=0.01).x
    return {"head_of_line": {"few_ratio": float(few), "ports_exponent_ratio": float(exponent),
                             "channels_exponent_ratio": float(answer[0])}}  # fmt: skip
