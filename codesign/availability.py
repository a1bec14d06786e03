"""What failures and variability leave of a workload: goodput of a job, capacity of a pool, tail of a step."""

from dataclasses import dataclass

import numpy as np

from codesign.catalog import Catalog
from codesign.hardware import Hardware, up_port_lanes_count
from codesign.metrics import WorkloadResult
from codesign.model.fabric.synchronisation import Barriers, synchronisation
from codesign.model.reliability import Availability, Components, FailureRates, Repair, availability
from codesign.networks import Networks
from codesign.space import Serving, Training
from codesign.units import Array, ns_from_s

ALMOST_SURE = 1.0 - 1e-12  # a link that cannot work loses every message; laws of chances want less than one


@dataclass(frozen=True, slots=True, eq=False)
class Sustained:
    """A workload over weeks: useful share of time, 99th percentile step over mean, share that variability takes."""

    goodput_frac: Array
    p99_ratio: Array
    vanishing_frac: Array


def sustained(
    work: Training | Serving, result: WorkloadResult, hardware: Hardware, nets: Networks, catalog: Catalog
) -> Sustained:
    """Failures and variability of one workload on a batch."""
    found = _availability(work, hardware, nets, catalog)
    share = found.capacity_frac if isinstance(work, Serving) else found.goodput_frac
    sync = synchronisation(_barriers(work, result, hardware, catalog))
    count = len(result)

    def column(value: object) -> Array:
        return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (count,)))

    return Sustained(column(share), column(sync.step_p99_ratio), column(sync.vanishing_frac))


def _availability(work: Training | Serving, hardware: Hardware, nets: Networks, catalog: Catalog) -> Availability:
    c, own = hardware.candidates, hardware.own
    rate = {
        part: catalog.value("failures", part, "stop_fit") for part in ("accelerator", "stack", "host", "nic", "switch")
    }
    domain = c.numbers("scale_up_domain_count")
    components = Components(
        accelerators_count=float(work.accelerators_count),
        memory_stacks_count=c.numbers("memory_stacks_count"),
        scale_up_links_count=nets.up.access_cables_count,
        scale_out_links_count=nets.out.access_cables_count,
        trunk_links_count=nets.up.trunk_cables_count + nets.out.trunk_cables_count,
        nics_count=1.0,
        scale_up_switches_count=nets.up.switches_count,
        scale_out_switches_count=nets.out.switches_count,
        host_accelerators_count=1.0,  # the host rate is per accelerator
        leaf_accelerators_count=np.minimum(nets.out_radix_count / 2.0, domain),
    )
    rates = FailureRates(
        accelerator_fit=rate["accelerator"],
        memory_stack_fit=rate["stack"],
        scale_up_link_fit=own.up.silicon.failure_fit,
        scale_out_link_fit=own.out.silicon.failure_fit,
        nic_fit=rate["nic"],
        switch_fit=rate["switch"],
        host_fit=rate["host"],
        flap_fit=own.out.silicon.flap_fit,
        flap_stop_prob=catalog.value("failures", "job", "flap_stop_prob"),
        routed_frac=catalog.value("failures", "job", "routed_frac"),
    )
    repair = Repair(
        checkpoint_ns=ns_from_s(catalog.value("failures", "job", "checkpoint_s")),
        restart_ns=ns_from_s(catalog.value("failures", "job", "restart_s")),
        repair_ns=ns_from_s(3600.0 * catalog.value("failures", "job", "repair_h")),
        spares_frac=catalog.value("failures", "job", "spares_frac"),
    )
    return availability(components, rates, repair)


def _barriers(work: Training | Serving, result: WorkloadResult, hardware: Hardware, catalog: Catalog) -> Barriers:
    """A step's barriers: the tensor group at every collective of every layer and pass, all ranks at the end."""
    own = hardware.own
    zero = np.zeros(len(result))
    talk = zero
    for name, part in result.parts_ns.items():
        if any(word in name for word in ("tensor", "context", "expert", "data", "transfer", "pipeline")):
            talk = talk + part
    tensor = np.maximum(np.asarray(result.mapping["tp_count"], dtype=np.float64), 1.0)
    passes = result.passes_count if isinstance(work, Training) else np.ones(len(result))
    barriers = 4.0 * result.layers_count * passes
    flits = np.asarray(own.up.transfer.message_flits_count, dtype=np.float64)
    lossless = np.asarray(own.up.transfer.no_retry_prob, dtype=np.float64)
    spread = {name: catalog.value("failures", "variability", name) for name in ("persistent_frac", "jitter_frac")}
    return Barriers(
        compute_ns=result.time_ns - talk,
        communication_ns=talk,
        barriers_count=barriers,
        inner_count=tensor,
        outer_count=np.maximum(work.accelerators_count / tensor, 1.0),
        retry_prob=np.where(flits > 0.0, np.minimum(1.0 - lossless, ALMOST_SURE), 0.0),
        retry_ns=own.up.transfer.retry_delay_ns,
        degraded_prob=np.asarray(own.up.silicon.degraded_loss_frac),
        degraded_frac=1.0 / np.maximum(up_port_lanes_count(hardware.candidates), 2.0),
        **spread,
    )
