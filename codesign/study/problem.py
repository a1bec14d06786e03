"""A search space bound to the catalog and the model: what a study asks, workers evaluate and sweeps screen."""

import hashlib
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import codesign
from codesign import resources
from codesign.candidates import assemble, assemble_rows, platform_candidates
from codesign.catalog import Catalog, load_catalog
from codesign.catalog.platforms import load_platform, load_platforms
from codesign.errors import SpaceError, nearest
from codesign.evaluation import check_question, evaluate, physical_violations, rules_of
from codesign.jsons import dump
from codesign.metrics import METRICS
from codesign.parameters import BY_NAME
from codesign.shadow import explained, shadow
from codesign.space import Choices, Fault, Range, Space, load_space, parse_space, shipped_spaces
from codesign.study import parameters as study_parameters
from codesign.study.policy import sampler_fault
from codesign.study.problem_protocol import Direction, Evaluated, Foreseen
from codesign.study.repair import Change, Row, repair
from codesign.study.repair_moves import moves_of, orders_of
from codesign.traits import traits
from codesign.units import Array

Value = study_parameters.Value


@dataclass(frozen=True)
class SpaceRecipe:
    """Rebuilds the problem of a space where it is called; text and seed only, so it travels to any worker."""

    text: str
    name: str

    def __call__(self) -> "SpaceProblem":
        """The problem, built here."""
        return SpaceProblem(parse_space(self.text, self.name), self.text)


class SpaceProblem:
    """One space, one catalog, one version of the code. Pure: the same rows, the same answer."""

    def __init__(self, space: Space, text: str, catalog: Catalog | None = None) -> None:
        self.space = space
        self.space_text = text
        self.catalog = catalog or load_catalog()
        check_question(space, self.catalog, self._search_faults())

    @property
    def name(self) -> str:
        """Name of the space."""
        return self.space.name

    @property
    def space_digest(self) -> str:
        """Hash of what is asked, whatever the layout of the file."""
        return hashlib.sha256(self.space.model_dump_json().encode()).hexdigest()[:16]

    @property
    def catalog_digest(self) -> str:
        """Hash of the loaded facts."""
        return self.catalog.digest

    @property
    def code_version(self) -> str:
        """Package version, commit and whether files were changed."""
        return code_version()

    @cached_property
    def parameters(self) -> dict[str, study_parameters.Parameter]:
        """What may vary, in the order of the file."""
        return {name: _as_parameter(name, options) for name, options in self.space.vary.items()}

    @property
    def objectives(self) -> tuple[tuple[str, Direction], ...]:
        """One to three metrics, each with its direction."""
        return tuple(self.space.objectives.items())

    @cached_property
    def rules(self) -> tuple[str, ...]:
        """Physical rules, service levels and the limits of the space, in a fixed order."""
        return tuple(rule.name for rule in rules_of(self.space))

    @property
    def batch_count(self) -> int:
        """Rows asked at once."""
        return self.space.search.batch

    @property
    def seed(self) -> int:
        """Same seed, same trials."""
        return self.space.search.seed

    @property
    def sampler(self) -> str | Mapping[str, Any]:
        """A name, with how many batches are in flight where the space says so."""
        plan = self.space.search
        return plan.sampler if plan.in_flight is None else {"name": plan.sampler, "in_flight": plan.in_flight}

    def _search_faults(self) -> list[Fault]:
        known, sampler = load_platforms(), self.space.search.sampler
        named = enumerate(self.space.baselines or ())
        faults = [Fault(("baselines", i), f"no platform {p!r}{nearest(p, known)}") for i, p in named if p not in known]
        if said := sampler_fault(sampler):
            faults.append(Fault(("search", "sampler"), said))
        return faults

    @property
    def _baseline_names(self) -> tuple[str, ...]:
        if self.space.baselines is not None:
            return self.space.baselines
        return tuple(name for name, platform in load_platforms().items() if platform.baseline)

    @cached_property
    def baselines(self) -> tuple[tuple[str, Mapping[str, Value]], ...]:
        """The points of the space nearest to machines that people built: the first trials (decision 5)."""
        rows: dict[tuple[Any, ...], tuple[str, Mapping[str, Value]]] = {}
        for name in self._baseline_names:
            decided = {p: d.value for p, d in load_platform(name).parameters.items()}
            row = {p: _snapped(decided[p], options) for p, options in self.space.vary.items()}
            row = {p: v for p, v in row.items() if _applies(self.space.vary[p], row)}
            rows.setdefault(tuple(sorted(row.items())), (f"near {name}", row))
        return tuple(rows.values())

    def evaluate(self, rows: Sequence[Mapping[str, Value]]) -> Evaluated:
        """Numbers for a batch of rows, after repair."""
        repaired, changes = self._repair([dict(row) for row in rows])
        found = evaluate(assemble_rows(repaired, self.space), self.space, self.catalog)
        details = [
            {"source": "search", "repairs": [asdict(change) for change in changes[i]], **found.details(i)}
            for i in range(len(rows))
        ]
        return Evaluated(
            repaired=repaired,
            values=found.metrics.columns(list(self.space.objectives)),
            constraints=np.array(found.violations.excess.T),
            details=[dump(entry, indent=None) for entry in details],
        )

    def settled(self, rows: Sequence[Mapping[str, Value]]) -> list[Row]:
        """Rows after repair, each with a value for every parameter, the platform's where it did not apply."""
        repaired, _ = self._repair([dict(row) for row in rows])
        return [self._usual | row for row in repaired]

    def foreseen(self, columns: Mapping[str, NDArray[Any]]) -> Foreseen:
        """Which rows can be built, and the traits of their machines."""
        candidates = assemble(columns, len(next(iter(columns.values()))), self.space)
        found, physical_found = traits(candidates, self.space, self.catalog)
        return Foreseen(physical_found.feasible(), np.stack(list(found.values()), axis=1))

    def machines(self) -> list[dict[str, Any]]:
        """The human baselines as they are, whole machines under the space's workloads and prices, unrepaired."""
        names = self._baseline_names
        if not names:
            return []
        found = evaluate(platform_candidates(names), self.space, self.catalog)
        return [
            {"number": None, "name": name, "source": f"baseline {name}", "asked": {}, "repairs": [], **found.details(i)}
            for i, name in enumerate(names)
        ]

    def _repair(self, rows: Sequence[Row]) -> tuple[list[Row], list[list[Change]]]:
        return repair(
            rows,
            self._physical_rules,
            moves_of(),
            self.space.vary,
            orders_of(self.catalog),
            self._physical_excess,
            self._usual,
        )

    @cached_property
    def _usual(self) -> Row:
        """What the space fixes or the platform has, as the space can say it."""
        platform = load_platform(self.space.base).parameters
        return {
            name: _snapped(self.space.fix.get(name, platform[name].value), options)
            for name, options in self.space.vary.items()
        }

    @cached_property
    def _physical_rules(self) -> tuple[str, ...]:
        return tuple(rule.name for rule in rules_of(self.space) if rule.name in moves_of())

    def _physical_excess(self, rows: Sequence[Row]) -> NDArray[np.float64]:
        found = physical_violations(assemble_rows(rows, self.space), self.space, self.catalog)
        place = {rule.name: i for i, rule in enumerate(found.rules)}
        return found.excess[[place[name] for name in self._physical_rules]]

    def explained(self, trial: Mapping[str, Any]) -> dict[str, Any]:
        """A stored trial with what binds it, by what ten per cent more of each resource at no cost would change."""
        columns = {name: [value] for name, value in trial["design"].items()}
        candidates = assemble(columns, 1, self.space.model_copy(update={"base": trial["platform"]}))
        return explained(trial, self.space, shadow(candidates, self.space, self.catalog)[1][0])

    def screen(self, columns: Mapping[str, NDArray[Any]]) -> tuple[Array, Array]:
        """Objectives (n, k) and constraints (n, r) of n designs, one column per parameter, without repair.

        A design that breaks a physical rule is not run: its objectives are the worst value of each metric and the rules
        of its workloads are NaN, not judged. Most points of a large space are such and would be most of the work.
        """
        count = len(next(iter(columns.values())))
        candidates = assemble(columns, count, self.space)
        physical = physical_violations(candidates, self.space, self.catalog)
        values = np.tile([METRICS[name].worst for name in self.space.objectives], (count, 1))
        constraints = np.full((count, len(self.rules)), np.nan)
        constraints[:, : len(physical.rules)] = physical.excess.T
        built = np.flatnonzero(physical.feasible())
        if len(built):
            found = evaluate(candidates.part(built.tolist()), self.space, self.catalog)
            values[built] = found.metrics.columns(list(self.space.objectives))
            constraints[built] = found.violations.excess.T
        return values, constraints


def recipe_of(name_or_path: str) -> SpaceRecipe:
    """The recipe of a shipped space or a space file.

    Raises:
        SpaceError: the file is wrong, or has nothing to vary.
    """
    space = load_space(name_or_path)
    if not space.vary:
        raise SpaceError(f"{space.name}: nothing under vary; a design file is for `codesign evaluate`")
    path = shipped_spaces().get(name_or_path, Path(name_or_path))
    return SpaceRecipe(path.read_text(encoding="utf-8"), path.name)


@cache
def code_version() -> str:
    """Package version, and in a checkout the commit and whether files differ from it."""
    root = resources.PACKAGE.parent
    if not (root / ".git").exists():
        return codesign.__version__
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        dirty = "+dirty" if _git("status", "--porcelain", "--untracked-files=no", "--", "codesign") else ""
    except (OSError, subprocess.SubprocessError):
        return codesign.__version__
    return f"{codesign.__version__}+{commit}{dirty}"


def _git(*words: str) -> str:
    run = subprocess.run(
        ["git", "-C", str(resources.PACKAGE.parent), *words], capture_output=True, text=True, timeout=10, check=True
    )
    return run.stdout.strip()


def _as_parameter(name: str, options: Choices | Range) -> study_parameters.Parameter:
    when = None
    if options.when:
        parent, values = next(iter(options.when.items()))
        when = study_parameters.When(parent, tuple(values))
    if isinstance(options, Choices):
        return study_parameters.Choices(tuple(options.choices), tuple(options.weights or ()), when)
    if BY_NAME[name].whole:
        step = 1 if options.step is None else max(1, int(options.step))
        return study_parameters.IntRange(
            int(options.low), int(options.high), step, options.log, options.peak, when=when
        )
    return study_parameters.FloatRange(options.low, options.high, options.step, options.log, options.peak, when=when)


def _applies(options: Choices | Range, row: Mapping[str, Value]) -> bool:
    return not options.when or all(row.get(parent) in values for parent, values in options.when.items())


def _snapped(value: Value, options: Choices | Range) -> Value:
    """The nearest value the space allows; a word it does not offer becomes its first choice."""
    if isinstance(options, Choices):
        if value in options.choices:
            return value
        numbers = [choice for choice in options.choices if not isinstance(choice, str)]
        if isinstance(value, str) or not numbers:
            return options.choices[0]
        return min(numbers, key=lambda choice: abs(choice - value))
    number = float(value) if not isinstance(value, str) else options.low
    number = min(max(number, options.low), options.high)
    if options.step is not None:
        number = options.low + round((number - options.low) / options.step) * options.step
        number = number if number <= options.high else number - options.step
    whole = number == int(number)
    return int(number) if whole else number
