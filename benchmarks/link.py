"""Links per CPU-second through the whole chain on one core: `python benchmarks/link.py [COUNT]`.

A search works batch after batch: the first batch also pays for memory that the later ones find mapped.
"""

import sys
import time

import numpy as np

from codesign.catalog import load_catalog
from codesign.links import link_inputs
from codesign.model.link.chain import link

BATCHES = 7


def main(count: int) -> None:
    generator = np.random.default_rng(0)
    choices = {
        "lane_rate_gbps": generator.choice([106.25, 212.5], count),
        "lanes_count": generator.integers(1, 9, count).astype(float),
        "length_m": generator.uniform(0.1, 5.0, count),
        "fec": generator.choice(["kp4", "rs272_258", "kr4", "none"], count),
        "medium": generator.choice(["passive_copper", "pluggable_optics"], count),
        "protocol": generator.choice(["ualink_200g", "sue"], count),
        "receive_buffer_bytes": generator.integers(1000, 200000, count).astype(float),
        "retry": generator.choice(["go_back_n", "selective", "none"], count),
    }
    start = time.process_time()
    inputs = link_inputs(load_catalog(), choices)
    bound = time.process_time()
    spent = []
    for _ in range(BATCHES):
        begun = time.process_time()
        found = link(inputs)
        spent.append(time.process_time() - begun)
    assert np.size(found.goodput_gbps) == count
    print(
        f"{count / spent[0]:,.0f} links per CPU-second in the first batch, {count / np.median(spent[1:]):,.0f} in the"
        f" later ones, names bound at {count / (bound - start):,.0f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100000)
