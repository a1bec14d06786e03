"""Which sampler for which space and budget: written down, chosen once, stored with the study."""

from collections.abc import Mapping
from typing import Any

from codesign.errors import StudyError, nearest
from codesign.study.cma import CmaSampler
from codesign.study.coding import Coding
from codesign.study.evolution import EvolutionSampler
from codesign.study.gp import GpSampler
from codesign.study.problem_protocol import Foreseer
from codesign.study.samplers import ExhaustiveSampler, RandomSampler, Sampler, SobolSampler
from codesign.study.tpe import TpeSampler

#: Names we answer to ourselves; Optuna's class names of the same methods mean ours, which take whole batches.
OURS = ("gp", "tpe", "nsga2", "nsga3", "random", "sobol", "cma-es", "exhaustive")
_SAME = {
    "RandomSampler": "random",
    "QMCSampler": "sobol",
    "NSGAIISampler": "nsga2",
    "NSGAIIISampler": "nsga3",
    "CmaEsSampler": "cma-es",
    "BruteForceSampler": "exhaustive",
}
_GP_BUDGET = 2000
_GP_OBJECTIVES = 2
_GP_FIRST = 512  # suggestions of a larger budget that the model makes before evolution breeds from what it found
#: Samplers that learn nothing may have many batches in flight without a different answer.
BLIND = ("random", "sobol", "exhaustive")


def known_samplers() -> tuple[str, ...]:
    """Names a space may ask for, beside ``optuna:NAME``."""
    return ("auto", *OURS, *_SAME)


def sampler_fault(name: str) -> str | None:
    """Why no sampler has this name, with the nearest that has; None where one does.

    >>> sampler_fault("gp"), sampler_fault("nsga4")
    (None, "no sampler 'nsga4'; did you mean 'nsga3'?")
    """
    if name.startswith("optuna:"):
        from codesign.study.search import optuna_fault  # Optuna takes a second to load

        return optuna_fault(name)
    return None if name in known_samplers() else f"no sampler {name!r}{nearest(name, known_samplers())}"


def resolve(
    sampler: str | Mapping[str, Any], coding: Coding, objectives_count: int, trials_total: int, batch_count: int
) -> dict[str, Any]:
    """The full specification of a sampler, ready to be stored with a study.

    Args:
        sampler: ``auto``, one of `OURS`, ``optuna:NAME`` for any sampler of Optuna, or a mapping with such a ``name``
            and options.
        coding: The space.
        objectives_count: One to three.
        trials_total: Budget.
        batch_count: Rows asked at once.

    Raises:
        StudyError: no such sampler or option.
    """
    spec: dict[str, Any] = {"name": sampler} if isinstance(sampler, str) else dict(sampler)
    name = _SAME.get(str(spec.get("name", "auto")), str(spec.get("name", "auto")))
    spec["name"] = name
    if name == "auto":
        chosen, why = choose(coding, objectives_count, trials_total)
        spec |= {"name": chosen, "policy": why}
        if chosen in ("nsga2", "nsga3") and objectives_count <= _GP_OBJECTIVES:
            spec.setdefault("gp_count", _GP_FIRST)
    elif fault := sampler_fault(name):
        raise StudyError(fault)
    elif name.startswith("optuna:"):
        from codesign.study.search import OptunaSuggester

        OptunaSuggester(coding, spec, 0, objectives_count)  # refuses options and libraries before a study is written
        return spec
    if spec["name"] in ("gp", "tpe"):
        spec.setdefault("startup_count", startup_count(batch_count))
    try:
        build(spec, coding, 0, batch_count)
    except TypeError as error:
        raise StudyError(f"sampler {spec['name']!r}: {error}") from None
    return spec


def choose(coding: Coding, objectives_count: int, trials_total: int) -> tuple[str, str]:
    """The policy: name of the sampler and why.

    =======================  ============  ===============================================================
    space and budget         sampler       why
    =======================  ============  ===============================================================
    no more designs than     exhaustive    nothing can be missed
    trials
    one or two objectives,   gp            learns most per trial
    up to 2,000 trials
    one objective, more      gp, nsga2     the first 512 by gp; then the cost of a suggestion is next to nothing
    two, more                gp, nsga3     the same, and it spreads over a front
    three                    nsga3         nothing does better
    =======================  ============  ===============================================================

    TPE (a suggestion costs a tenth of that of a Gaussian process) and CMA-ES (all parameters ordered, one objective, a
    thousand trials and more) are asked for by name. Evidence: decision 8, benchmarks/search/quality.py.
    """
    size = coding.size
    if size is not None and size <= trials_total:
        return (
            "exhaustive",
            f"the space has {size} designs and {trials_total} trials are allowed: nothing can be missed",
        )
    if objectives_count <= _GP_OBJECTIVES and trials_total <= _GP_BUDGET:
        return "gp", f"{trials_total} trials, at most {_GP_BUDGET}: learns most per trial"
    first = f"the first {_GP_FIRST} by gp, then " if objectives_count <= _GP_OBJECTIVES else ""
    if objectives_count > 1:
        why = f"{objectives_count} objectives: {first}spreads over the front, costs next to nothing"
        return "nsga3", f"{trials_total} trials, {why}"
    return "nsga2", f"{trials_total} trials: {first}a suggestion costs next to nothing"


def startup_count(batch_count: int) -> int:
    """Quasi-random suggestions before a model is believed, in whole batches: sixteen, however many parameters.

    More is wasted where a trial counts: on a space of 23 parameters two per parameter cost the best of the first
    hundred trials a tenth (benchmarks/search/quality.py).
    """
    return -(-16 // batch_count) * batch_count


def build(
    spec: Mapping[str, Any], coding: Coding, seed: int, batch_count: int, foreseer: Foreseer | None = None
) -> Sampler:
    """A fresh sampler of ours; it knows nothing yet but what the problem foresees."""
    options = {key: value for key, value in spec.items() if key not in ("name", "policy", "in_flight")}
    match spec["name"]:
        case "random":
            return RandomSampler(coding, **options)
        case "sobol":
            return SobolSampler(coding, seed, **options)
        case "exhaustive":
            return ExhaustiveSampler(coding, seed, **options)
        case "gp":
            return GpSampler(coding, seed, foreseer=foreseer, **options)
        case "tpe":
            return TpeSampler(coding, seed, **options)
        case "nsga2" | "nsga3":
            led: dict[str, Any] = {"startup_count": options.pop("gp_count", 0)}
            if led["startup_count"]:
                led["startup"] = GpSampler(coding, seed, foreseer=foreseer, startup_count=startup_count(batch_count))
            return EvolutionSampler(coding, seed, spread=spec["name"], **led, **options)
        case "cma-es":
            return CmaSampler(coding, seed, batch_count=batch_count, **options)
        case name:
            raise AssertionError(name)
