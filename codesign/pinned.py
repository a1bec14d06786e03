"""The mapping a space pins: its degrees over their defaults, and why it cannot be."""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from codesign.errors import SpaceError, nearest
from codesign.model.workload.layout import Layout, layout_faults
from codesign.model.workload.serving_inputs import Pool, ServingLayout
from codesign.serving_formats import numbers_of
from codesign.space import Fault, Serving, Training, Value
from codesign.transformers import transformer_of

Pinned = Mapping[str, Value]
Degrees = dict[str, float]

#: Fault of a training layout -> what has to hold.
_HOLDS: Mapping[str, str] = {
    "ranks_ratio": "tp x pp x cp x dp must be the accelerators_count of the job",
    "heads_ratio": "tp_count must divide the heads of the model",
    "layers_ratio": "pp_count must not exceed the layers of the model",
    "experts_ratio": "ep_count must divide the experts of a layer, and tp x cp x dp",
    "batch_ratio": "dp_count x micro_batch_count must divide global_batch_count",
    "interleave_ratio": "with vp_count above 1, pp_count must divide the microbatches of a rank",
}
_POOL = tuple(f.name for f in fields(Pool))


def mapping_faults(work: Training | Serving, pinned: Pinned) -> list[Fault]:
    """Why a pinned mapping cannot be: unknown degrees, degrees that are no counts, degrees that do not fit the work."""
    known = _training_defaults() if isinstance(work, Training) else _serving_defaults()
    faults = [fault for name, value in pinned.items() if (fault := _degree_fault(name, value, known)) is not None]
    if faults:
        return faults
    return _training_faults(work, pinned) if isinstance(work, Training) else _serving_faults(work, pinned)


def pinned_layout(pinned: Pinned, work: Training) -> Layout:
    """The layout of a training job; data parallelism fills the job where it is not given.

    Raises:
        SpaceError: an unknown degree, or degrees that do not divide the job.
    """
    _refuse(mapping_faults(work, pinned))
    return Layout(**{k: np.array([v]) for k, v in _training_degrees(work, pinned).items()})


def pinned_serving(pinned: Pinned, work: Serving) -> ServingLayout:
    """The layout of a serving system; without prefill workers of its own, engines fill the system where not given.

    Raises:
        SpaceError: an unknown degree, or pools that need more accelerators than there are.
    """
    _refuse(mapping_faults(work, pinned))
    given = {k: np.array([v]) for k, v in _serving_degrees(work, pinned).items()}
    decode = Pool(*(given[n] for n in _POOL))
    apart = bool(given["disaggregated_flag"][0])
    prefill = Pool(*(given[f"prefill_{n}"] for n in _POOL)) if apart else decode
    return ServingLayout(prefill, decode, given["disaggregated_flag"], given["users_count"])


def _refuse(faults: list[Fault]) -> None:
    if faults:
        raise SpaceError("\n".join(f"{'.'.join(['mapping', *map(str, f.keys)])}: {f.says}" for f in faults))


def _degree_fault(name: str, value: Value, known: Mapping[str, float]) -> Fault | None:
    if name not in known:
        return Fault((name,), f"no degree {name!r}{nearest(name, known)}")
    least = 1 if name.endswith("_count") else 0
    if isinstance(value, str) or value != int(value) or value < least:
        return Fault((name,), f"{name} must be a whole number, {least} or more; got {value!r}")
    return None


def _training_defaults() -> Degrees:
    defaults = {f.name: 1.0 if f.name.endswith("_count") else 0.0 for f in fields(Layout)}
    return defaults | {"optimizer_sharded_flag": 1.0}


def _training_degrees(work: Training, pinned: Pinned) -> Degrees:
    given = {name: float(pinned.get(name, default)) for name, default in _training_defaults().items()}
    if "dp_count" not in pinned:
        others = given["tp_count"] * given["pp_count"] * given["cp_count"]
        given["dp_count"] = max(1.0, work.accelerators_count // others)
    return given


def _training_faults(work: Training, pinned: Pinned) -> list[Fault]:
    given, transformer = _training_degrees(work, pinned), numbers_of(transformer_of([work.model]))
    layout = Layout(**{k: np.array([v]) for k, v in given.items()})
    sizes = (transformer.heads_count, transformer.layers_count, transformer.experts_count)
    found = layout_faults(layout, float(work.accelerators_count), *sizes, float(work.global_batch_count))
    degrees = ", ".join(f"{k} {v:g}" for k, v in given.items() if k.endswith("_count") and v > 1.0)
    of = f"{work.accelerators_count} accelerators, global batch {work.global_batch_count}, {work.model}"
    return [
        Fault((), f"{meaning}; got {degrees or 'all degrees 1'} for {of}")
        for key, meaning in _HOLDS.items()
        if np.any(np.asarray(getattr(found, key)) > 0.0)
    ]


def _serving_defaults() -> Degrees:
    names = (*_POOL, "users_count", *(f"prefill_{n}" for n in _POOL))
    return dict.fromkeys(names, 1.0) | {"disaggregated_flag": 0.0}


def _pool_size(degrees: Degrees, pool: str) -> float:
    return degrees[f"{pool}tp_count"] * degrees[f"{pool}dp_count"] * degrees[f"{pool}pp_count"]


def _serving_degrees(work: Serving, pinned: Pinned) -> Degrees:
    given = {name: float(pinned.get(name, default)) for name, default in _serving_defaults().items()}
    if "workers_count" not in pinned and given["disaggregated_flag"] == 0.0:
        given["workers_count"] = max(1.0, work.accelerators_count // _pool_size(given, ""))
    return given


def _serving_faults(work: Serving, pinned: Pinned) -> list[Fault]:
    given, faults = _serving_degrees(work, pinned), []
    pools = ("", "prefill_") if given["disaggregated_flag"] > 0.0 else ("",)
    used = sum(given[f"{pool}workers_count"] * _pool_size(given, pool) for pool in pools)
    if used > work.accelerators_count:
        says = f"workers x tp x dp x pp must fit accelerators_count {work.accelerators_count}; got {used:g}"
        faults.append(Fault((), says))
    for pool in ("", "prefill_"):
        name, most = f"{pool}ep_count", given[f"{pool}tp_count"] * given[f"{pool}dp_count"]
        if given[name] > most:
            faults.append(Fault((name,), f"{name} must be at most tp x dp = {most:g}; got {given[name]:g}"))
    return faults
