"""What the two serving fits share: rows once bound, constants put into a catalog, robust least squares, hold-outs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from codesign.cases.inference import engines_of, refusals, replayed, ways_of
from codesign.cases.rows import CaseRows, read_rows
from codesign.cases.serving import bound, speculation_share
from codesign.cases.serving_bind import ServingBatch, bind_tables
from codesign.catalog import Catalog
from codesign.engines import engine_of, queue_constants, serving_software
from codesign.model.workload.serving import ServingPoint
from codesign.model.workload.serving_search import at_layout
from codesign.resources import case_data
from codesign.units import Array, Numeric

Key = tuple[str, str]
Residuals = Callable[[Catalog], Array]
#: a residual beyond this many log units weighs less and less: one bad row must not bend a constant
SOFT = 0.15
#: how strongly a constant is held to its prior: one prior deviation (a quarter of the range) costs as much as this
PRIOR_WEIGHT = 1.0


@dataclass(frozen=True)
class FitRows:
    """Rows of the measured file that may be fitted to, bound to the model's structs."""

    rows: CaseRows
    batch: ServingBatch
    engines: list[str]
    classes: list[str]
    speculation: Array

    def pick(self, chosen: Array) -> "FitRows":
        """Some of the rows."""
        at = np.flatnonzero(chosen)
        return FitRows(
            self.rows.pick(list(at)), self.batch.pick(np.asarray(at)), [self.engines[i] for i in at],
            [self.classes[i] for i in at], self.speculation[at],
        )  # fmt: skip


def fit_rows(catalog: Catalog) -> FitRows:
    """Rows of grades A and B of the packaged serving measurements."""
    rows = read_rows(case_data() / "serving.csv")[0]
    graded = [i for i, grade in enumerate(rows.text("grade")) if grade in ("A", "B")]
    rows = rows.pick(graded)
    usable, batch, classes, _ = bound(rows, catalog)
    assert batch is not None
    rows = rows.pick(usable)
    engines = [engine_of(catalog, name) for name in rows.text("backend")]
    return FitRows(rows, batch, engines, [classes[i] for i in usable], speculation_share(rows, engines))


def with_constants(catalog: Catalog, law: str, values: Mapping[Key, float]) -> Catalog:
    """The catalog with some fitted constants replaced."""
    groups = {group: dict(names) for group, names in catalog.constants[law].items()}
    for (group, name), value in values.items():
        groups[group][name] = groups[group][name].model_copy(update={"value": float(value)})
    return replace(catalog, constants={**catalog.constants, law: groups})


def predicted(data: FitRows, catalog: Catalog) -> ServingPoint:
    """The model on rows already bound, with the constants of a catalog."""
    system = data.batch.system
    gain = catalog.constant("serving_tpot", "all", "speculation_ratio") - 1.0
    system = replace(
        system,
        job=replace(system.job, speculation_ratio=1.0 + data.speculation * gain),
        software=serving_software(catalog, data.engines),
        queue=queue_constants(catalog, data.engines),
    )
    return at_layout(system, data.batch.layout)


def table_residuals(catalog: Catalog) -> Residuals:
    """Log errors of the inference tables (grade A, static batches and full load) as a function of the constants."""
    rows = next(r for r in read_rows(case_data() / "inference.csv") if r.kind == "inference")
    refused = refusals(rows, catalog)
    grades, parts = rows.text("grade"), []
    for way in ("static", "full"):
        mine = [i for i, found in enumerate(ways_of(rows)) if found == way and grades[i] == "A" and refused[i] is None]
        chosen = rows.pick(mine)
        engines = engines_of(chosen, catalog)
        parts.append((way, chosen, engines, bind_tables(catalog, chosen, engines)))

    def residuals(constants: Catalog) -> Array:
        misses = []
        for way, chosen, engines, batch in parts:
            system = replace(batch.system, software=serving_software(constants, engines))
            values, _ = replayed(chosen, replace(batch, system=system), way)
            misses.append(np.log(values / chosen.numbers("value")))
        return np.concatenate(misses)

    return residuals


def fitted(catalog: Catalog, law: str, keys: Sequence[Key], residuals: Residuals) -> dict[Key, float]:
    """Constants that minimise the residuals, held to their bounds and softly to their priors; deterministic."""
    known = catalog.constants[law]
    entries = [known[group][name] for group, name in keys]
    low, high = np.array([e.low for e in entries]), np.array([e.high for e in entries])
    prior = np.array([e.value if e.prior is None else e.prior for e in entries])
    width = high - low

    def cost(scaled: Array) -> Array:
        values = dict(zip(keys, low + scaled * width, strict=True))
        miss = residuals(with_constants(catalog, law, values))
        soft = SOFT * np.arcsinh(miss / SOFT)
        held = PRIOR_WEIGHT * SOFT * 4.0 * (scaled - (prior - low) / width)
        return np.concatenate([soft, held])

    start = np.clip((prior - low) / width, 0.02, 0.98)
    solution = least_squares(cost, start, bounds=(0.0, 1.0), diff_step=1e-3, max_nfev=40)
    return {key: float(value) for key, value in zip(keys, low + solution.x * width, strict=True)}


def log_ratio(predicted_ns: Numeric, measured_ms: Array) -> Array:
    """Log of predicted over measured; 0 where nothing was measured."""
    known = np.isfinite(measured_ms) & (measured_ms > 0)
    ratio = np.where(known, np.asarray(predicted_ns) * 1e-6 / np.where(known, measured_ms, 1.0), 1.0)
    return np.asarray(np.log(np.maximum(ratio, 1e-9)))


def grouped(values: dict[Key, float]) -> dict[str, dict[str, float]]:
    """Values as groups of names."""
    out: dict[str, dict[str, float]] = {}
    for (group, name), value in values.items():
        out.setdefault(group, {})[name] = value
    return out
