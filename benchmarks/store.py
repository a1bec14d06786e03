"""CPU per trial of writing and loading, beside Optuna's own storage. Run by hand: python benchmarks/store.py [URL]"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import psutil

from codesign.store import trials
from codesign.store.repository import Store
from codesign.store.trials import ParameterColumn
from codesign.study import parameters
from codesign.study.liveness import description
from codesign.study.parameters import Choices, FloatRange
from codesign.study.search import distribution_json

COUNT, BATCH = 9984, 64
PARAMETERS: dict[str, Any] = {f"real{i}": FloatRange(0.0, 1.0) for i in range(12)} | {
    f"word{i}": Choices(("copper", "optics", "backplane", "active")) for i in range(8)
}
DETAILS = json.dumps(
    {"waterfall": {f"part{i}": 1.2345678 * i for i in range(12)}, "bill": {str(i): 2.5 * i for i in range(12)}}
)


def main() -> None:
    """Write and load ten thousand trials of 20 parameters, 3 objectives and 5 rules."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        url = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'bench.db'}"
        with Store(url) as store:
            ours = write(store)
            started = time.process_time()
            store.columns(store.study("bench"))
            columns = time.process_time() - started
            address = store.database.url
        fast, grown = load(trials.fast_storage(address))
        stock_write = stock(address)
        stock_load, _ = load(optuna.storages.RDBStorage(address))
    print(f"write        {ours:8.3f} ms CPU per trial in batches of {BATCH}; stock ask/tell {stock_write:.1f}")
    print(f"load columns {columns:8.2f} s CPU for {COUNT} trials")
    print(f"load frozen  {fast:8.2f} s CPU, {grown:.0f} MB; stock {stock_load:.1f} s, {stock_load / fast:.0f} times")


def write(store: Store) -> float:
    """Milliseconds of CPU per trial through our writer."""
    record = {
        "name": "bench",
        "parent": None,
        "trials_total": COUNT,
        **dict.fromkeys(("space_name", "space_digest", "space_text", "catalog_digest", "code_version"), "bench"),
        "parameters": parameters.to_json(PARAMETERS),
        "objectives": [["a", "minimize"], ["b", "minimize"], ["c", "maximize"]],
        "rules": [f"rule{i}" for i in range(5)],
        "sampler": {"name": "random"},
        "seed": 1,
        "batch_count": BATCH,
        "in_flight_count": 1,
        "first_rows": [],
    }
    study = store.create_study(record, "benchmark")
    run_id = store.start_run(study, description("inline", 1), [], join=False)
    columns = [ParameterColumn(n, distribution_json(p)) for n, p in PARAMETERS.items()]
    rng = np.random.default_rng(0)
    text = ("0" * 32, DETAILS, DETAILS, DETAILS)
    started = time.process_time()
    for index in range(COUNT // BATCH):
        internal = np.concatenate([rng.random((BATCH, 12)), np.floor(rng.random((BATCH, 8)) * 4)], axis=1)
        batch = store.open_batch(study, run_id, columns, internal, batch_index=index)
        store.close_batch(study, batch, rng.random((BATCH, 3)), rng.random((BATCH, 5)) - 0.5, [text] * BATCH)
    return (time.process_time() - started) / COUNT * 1e3


def load(storage: Any) -> tuple[float, float]:
    """Seconds of CPU and megabytes for all trials as Optuna's objects."""
    before = psutil.Process().memory_info().rss
    started = time.process_time()
    found = storage.get_all_trials(storage.get_study_id_from_name("bench"), deepcopy=False)
    spent = time.process_time() - started
    assert len(found) == COUNT
    grown = (psutil.Process().memory_info().rss - before) / 1e6
    storage.remove_session()
    storage.engine.dispose()
    return spent, grown


def stock(url: str) -> float:
    """Milliseconds of CPU per trial by ask and tell, 30 trials."""
    storage = optuna.storages.RDBStorage(url)
    study = optuna.create_study(storage=storage, directions=["minimize"] * 3, sampler=optuna.samplers.RandomSampler(0))
    started = time.process_time()
    for _ in range(30):
        trial = study.ask()
        for name, parameter in PARAMETERS.items():
            if isinstance(parameter, Choices):
                trial.suggest_categorical(name, parameter.values)
            else:
                trial.suggest_float(name, 0.0, 1.0)
        for i in range(5):
            trial.set_constraint(f"rule{i}", 0.0)
        study.tell(trial, [1.0, 2.0, 3.0])
    spent = (time.process_time() - started) / 30 * 1e3
    storage.remove_session()
    storage.engine.dispose()
    return spent


if __name__ == "__main__":
    main()
