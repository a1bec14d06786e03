"""What is known of a machine before any workload runs on it: the rules it breaks, and what workloads live on.

A cost per token is nearly a smooth function of a dozen such numbers, whatever parameters they came from: a search that
learns from them as well as from the parameters needs a fraction of the trials (decision 9).
"""

import numpy as np

from codesign.billing import bill_of, links_w, scenario_of, watts_of
from codesign.candidates import Candidates
from codesign.catalog import Catalog
from codesign.evaluation import largest_job
from codesign.hardware import Hardware, hardware, product_load
from codesign.metrics import Violations
from codesign.model.chip.power import allowed_w
from codesign.rules import physical
from codesign.space import Space
from codesign.units import Array, Numeric

_LEAST = 1e-9  # so that a dead link or an absent tier has a logarithm


def traits(candidates: Candidates, space: Space, catalog: Catalog) -> tuple[dict[str, Array], Violations]:
    """Logarithms of what each machine offers and costs, by name, each (n,), and the physical rules it breaks.

    The power behind the price is that of the long product power limits are set on: what a workload draws is not known
    yet. Rates are those of one accelerator, per direction.
    """
    machines = hardware(candidates, catalog, largest_job(space))
    own, nets, count = machines.own, machines.nets, len(candidates)

    def log(value: Numeric) -> Array:
        return np.log(np.maximum(np.broadcast_to(np.asarray(value, dtype=np.float64), (count,)), _LEAST))

    memory, up, out = own.memory, own.up, own.out
    columns = {
        "usd_per_h": log(_usd_per_h(machines, space, catalog)),
        "peak_gflops": log(own.chip.bf16_peak_gflops * own.clock_frac),
        "clock_frac": log(own.clock_frac),
        "memory_rate_gbps": log(memory.peak_rate_gbps * np.asarray(memory.weights_frac)),
        "memory_bytes": log(memory.capacity_bytes),
        "sram_mb": log(candidates.numbers("sram_mb")),
        "second_tier_bytes": log(1.0 + own.second_tier_bytes),
        "scale_up_rate_gbps": log(up.goodput_gbps * own.up_ports_count),
        "scale_up_latency_ns": log(up.coding.base_ns + up.transfer.retry_mean_ns),
        "scale_up_domain_count": log(candidates.numbers("scale_up_domain_count")),
        "scale_up_exchange_ratio": log(nets.exchange_ratio),
        "scale_out_rate_gbps": log(out.goodput_gbps * own.out_ports_count),
        "scale_out_latency_ns": log(out.coding.base_ns + out.transfer.retry_mean_ns),
        "scale_out_all_to_all_ratio": log(nets.out.all_to_all_ratio),
        "product_w": log(own.product_w),
        "power_cap_w": log(allowed_w(own.power)),
        "links_w": log(1.0 + links_w(machines)),
    }
    return columns, physical(machines, nets, catalog)


def _usd_per_h(machines: Hardware, space: Space, catalog: Catalog) -> Numeric:
    own = machines.own
    load = product_load(catalog, own.chip, own.memory, own.up, own.up_ports_count)
    watts = watts_of(load, machines, catalog)
    bill, _ = bill_of(machines, machines.nets, watts, scenario_of(space.scenario), catalog)
    return bill.hourly.total_usd_per_h
