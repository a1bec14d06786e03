"""Speed of the training search: evaluations of one (candidate, layout) pair per CPU-second of one core.

`python benchmarks/training.py [CANDIDATES]`. An evaluation is one layout that divides, on one candidate, through
products, attention, collectives, schedule, memory and the argmin; building engines and layout grid is in the time.
"""

import sys
import time
from dataclasses import fields, replace
from typing import Any

import numpy as np

from codesign.catalog import Catalog, load_catalog
from codesign.fabrics import fabric_of
from codesign.machines import attention_engine, gemm_engine, mla_engine
from codesign.model.workload.machine import Machine
from codesign.model.workload.training_inputs import TrainingEngines, TrainingJob
from codesign.model.workload.training_search import best_training, training_layouts
from codesign.software import attention_generation, release_of, software_of, training_constants
from codesign.transformers import transformer_of

PART, ACCELERATORS = "h100-sxm", 1024
JOBS = (("Llama-3.1-405B", 8192.0, 1536.0), ("DeepSeek-V3", 4096.0, 4096.0))


def first(struct: Any) -> Any:
    """The first row of a struct as plain numbers."""
    return type(struct)(
        **{f.name: float(np.asarray(getattr(struct, f.name)).reshape(-1)[0]) for f in fields(struct) if f.init}
    )


def run(catalog: Catalog, model: str, sequence: float, batch: float, count: int) -> tuple[int, float]:
    """Evaluations and CPU seconds of one search."""
    begin = time.process_time()
    spread, names = np.random.default_rng(0), [PART] * count
    transformer = first(transformer_of([model]))
    job = TrainingJob(sequence, batch, 1.0, 2.0, 4.0, 12.0, 2.0, 2.0, 1.0, 1.0, 0.0)
    engines = TrainingEngines(
        gemm_engine(catalog, names, ["fp8"] * count),
        gemm_engine(catalog, names, ["bf16"] * count),
        attention_engine(catalog, names, ["bf16"] * count),
        mla_engine(catalog, names, ["bf16"] * count),
    )
    fabric = fabric_of(catalog, names, exchange="nccl")
    up = replace(fabric.scale_up, rate_gbps=fabric.scale_up.rate_gbps * spread.uniform(0.5, 2.0, count))
    each = np.ones(count)
    machine = Machine(
        ACCELERATORS * each, 80e9 * spread.uniform(1.0, 3.0, count), 26800.0 * each, 0.85 * each, 6e9 * each,
        480e9 * each, 400.0 * each, 6000.0 * each, each,
    )  # fmt: skip
    release = release_of(catalog, "megatron", 2026.0)
    software = first(software_of(catalog, [release], [attention_generation(catalog, PART)], [False]))
    layouts = training_layouts(transformer, job, ACCELERATORS, offload=True)
    best_training(
        transformer, job, layouts, engines, replace(fabric, scale_up=up), machine, software, training_constants(catalog)
    )
    return count * len(np.asarray(layouts.tp_count)), time.process_time() - begin


def main() -> None:
    """Print a line per job: a warm run after a first one."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    catalog = load_catalog()
    for model, sequence, batch in JOBS:
        run(catalog, model, sequence, batch, min(count, 4))
        evaluations, seconds = run(catalog, model, sequence, batch, count)
        rate = evaluations / seconds / 1e6
        print(f"{model:16s} {evaluations:12,d} evaluations {seconds:7.2f} CPU s {rate:6.2f} million per CPU-second")


if __name__ == "__main__":
    main()
