"""The only file that knows Optuna's samplers: ours as arrays, or any of Optuna's by name, behind one interface."""

import importlib
import importlib.util
import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)

from codesign.errors import StudyError, nearest
from codesign.store.repository import strict_json
from codesign.study.coding import Coding
from codesign.study.parameters import Choices, IntRange, Parameter
from codesign.study.problem_protocol import Foreseer
from codesign.study.samplers import Told, batch_generator
from codesign.study.suggest import ArraySuggester, Suggester
from codesign.units import Array

_NEEDS = {"GPSampler": ("torch",)}  # libraries that a class of Optuna loads late
#: History shown to samplers whose cost grows with it: the best quarter and the most recent.
_WINDOWS = {"TPESampler": 1000, "GPSampler": 200}


def suggester(
    spec: Mapping[str, Any],
    coding: Coding,
    seed: int,
    batch_count: int,
    objectives: Sequence[tuple[str, str]],
    problem: object = None,
) -> Suggester:
    """The sampler a study's specification asks for, knowing nothing yet but what ``problem`` foresees, if it does."""
    if str(spec["name"]).startswith("optuna:"):
        return OptunaSuggester(coding, spec, seed, len(objectives))
    return ArraySuggester(coding, spec, seed, batch_count, problem if isinstance(problem, Foreseer) else None)


def distribution(parameter: Parameter) -> BaseDistribution:
    """A parameter as Optuna describes it; ends are moved onto the last step."""
    if isinstance(parameter, Choices):
        return CategoricalDistribution(parameter.values)
    if isinstance(parameter, IntRange):
        high = parameter.low + (parameter.high - parameter.low) // parameter.step * parameter.step
        return IntDistribution(parameter.low, high, log=parameter.log, step=parameter.step)
    if parameter.step is None:
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    count = int((parameter.high - parameter.low) / parameter.step + 1e-9)
    return FloatDistribution(parameter.low, parameter.low + count * parameter.step, step=parameter.step)


def distribution_json(parameter: Parameter) -> str:
    """The text Optuna's tables keep for a parameter."""
    return distribution_to_json(distribution(parameter))


class OptunaSuggester:
    """Any sampler of Optuna, asked row by row on a study in memory that is rebuilt for every batch.

    What the sampler notes on trials and study while asking (generations, a covariance matrix) is returned with the
    batch, stored with it, and given back when the study is rebuilt.
    """

    def __init__(self, coding: Coding, spec: Mapping[str, Any], seed: int, objectives_count: int) -> None:
        self._coding = coding
        self._seed = seed
        self._directions: list[Any] = ["minimize"] * objectives_count
        self._class = _sampler_class(str(spec["name"]).removeprefix("optuna:"))
        _refuse_unfit(self._class)
        options = {key: value for key, value in spec.items() if key not in ("name", "policy", "in_flight")}
        self._window = options.pop("window_count", _WINDOWS.get(self._class.__name__))
        if self._class.__name__ == "TPESampler":
            options = {"multivariate": True, "group": coding.conditional} | options
        self._options = options
        self._distributions = {name: distribution(p) for name, p in coding.parameters.items()}
        self._history: list[tuple[float, Any]] = []  # (total excess + first cost as an order, frozen trial)
        self._study_notes: dict[str, Any] = {}
        self._make(0)

    def observe(self, told: Told, state: str | None) -> None:
        """Keep a batch as finished trials."""
        notes = json.loads(state) if state is not None else {"trials": [], "study": {}}
        self._study_notes |= notes["study"]
        rows = self._coding.rows(told.internal)
        for i, row in enumerate(rows):
            attributes = notes["trials"][i] if i < len(notes["trials"]) else {}
            trial = optuna.trial.create_trial(
                values=told.costs[i].tolist(),
                params=dict(row),
                distributions={name: self._distributions[name] for name in row},
                system_attrs={**attributes, "constraints": [float(told.violation[i])]},
            )
            self._history.append((float(told.violation[i]), trial))

    def suggest(self, batch_index: int, first_index: int, count: int) -> tuple[Array, str | None]:  # noqa: ARG002 - every sampler's form
        """Ask a freshly seeded sampler ``count`` times."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return self._suggest(batch_index, count)
            except ImportError as error:  # samplers load what they need as late as at the first trial they think about
                raise _lacking(self._class, error) from None

    def _suggest(self, batch_index: int, count: int) -> tuple[Array, str | None]:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        seed = int(batch_generator(self._seed, batch_index).integers(0, 2**31))
        study = optuna.create_study(directions=self._directions, sampler=self._make(seed))
        storage = study._storage
        for key, value in self._study_notes.items():
            storage.set_study_system_attr(study._study_id, key, value)
        study.add_trials(self._shown())
        before = dict(storage.get_study_system_attrs(study._study_id))
        rows, notes = [], []
        for _ in range(count):
            trial = study.ask()
            rows.append(self._row(trial))
            notes.append(dict(storage.get_trial(trial._trial_id).system_attrs))
        after = storage.get_study_system_attrs(study._study_id)
        fresh = {key: value for key, value in after.items() if before.get(key) != value}
        if not fresh and not any(notes):
            return self._coding.encode(rows), None
        return self._coding.encode(rows), strict_json({"trials": notes, "study": fresh})

    def _row(self, trial: Any) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for name in self._coding.names_parents_first:
            when = self._coding.parameters[name].when
            if when is None or (when.parent in row and row[when.parent] in when.values):
                row[name] = trial._suggest(name, self._distributions[name])
        return row

    def _shown(self) -> list[Any]:
        if self._window is None or len(self._history) <= self._window:
            return [trial for _, trial in self._history]
        costs = np.array([[excess, trial.values[0]] for excess, trial in self._history])
        keep = np.zeros(len(costs), dtype=bool)
        keep[np.lexsort((costs[:, 1], costs[:, 0]))[: self._window // 4]] = True
        keep[np.flatnonzero(~keep)[int(keep.sum()) - self._window :]] = True
        return [trial for kept, (_, trial) in zip(keep, self._history, strict=True) if kept]

    def _make(self, seed: int) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # experimental and deprecated options are the caller's choice
            return self._built(seed)

    def _built(self, seed: int) -> Any:
        options = dict(self._options)
        try:
            return self._class(**options, seed=seed)
        except TypeError as error:
            if "seed" not in str(error):
                raise StudyError(f"sampler {self._class.__name__}: {error}") from None
        except ImportError as error:
            raise _lacking(self._class, error) from None
        return self._class(**options)


def _refuse_unfit(sampler: Any) -> None:
    """Refuse a sampler whose library is not there, though Optuna would notice only once it has seen some trials."""
    needed = [library for parent in sampler.__mro__ for library in _NEEDS.get(parent.__name__, ())]
    for library in needed:
        if importlib.util.find_spec(library) is None:
            raise _lacking(sampler, f"No module named {library!r}")


def _lacking(sampler: Any, said: object) -> StudyError:
    return StudyError(f"sampler {sampler.__name__} needs a library: {said}; install codesign[gp]")


def optuna_fault(name: str) -> str | None:
    """Why ``optuna:NAME`` is no sampler, with the nearest that is; None where it is one."""
    try:
        _sampler_class(name.removeprefix("optuna:"))
    except StudyError as error:
        return str(error)
    return None


def _sampler_class(name: str) -> Any:
    """A class of optuna.samplers, or MODULE:CLASS of anybody's."""
    module, _, attribute = name.rpartition(":")
    try:
        home = importlib.import_module(module or "optuna.samplers")
    except ImportError as error:
        raise StudyError(f"no sampler 'optuna:{name}': {error}") from None
    found = getattr(home, attribute, None)
    if not (isinstance(found, type) and issubclass(found, optuna.samplers.BaseSampler)):
        before = f"optuna:{module}:" if module else "optuna:"
        known = [f"{before}{n}" for n in getattr(home, "__all__", dir(home)) if n.endswith("Sampler")]
        raise StudyError(f"no sampler 'optuna:{name}'{nearest(f'optuna:{name}', known)}")
    return found
