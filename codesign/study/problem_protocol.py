"""What a study asks of a problem: what may vary, what counts, and numbers for a batch of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from codesign.errors import ShapeError, StudyError
from codesign.store.repository import FIDELITY
from codesign.study.parameters import Parameter, Value
from codesign.units import Array

Direction: TypeAlias = Literal["minimize", "maximize"]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """Answers to one batch, row for row.

    ``repaired`` is each row as it was built after repair, ``values`` (n, k) objectives, ``constraints`` (n, r) graded
    excess per rule (<= 0 is kept), ``details`` one JSON text per row.
    """

    repaired: list[dict[str, Value]]
    values: Array
    constraints: Array
    details: list[str]

    def __post_init__(self) -> None:
        count = len(self.repaired)
        if not (self.values.shape[0] == self.constraints.shape[0] == len(self.details) == count):
            raise ShapeError(f"an evaluated batch of {count} rows has columns of other lengths")

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows keep every rule."""
        return np.asarray((self.constraints <= 0.0).all(axis=1))


class Problem(Protocol):
    """One search space bound to one catalog and one version of the code. Pure: the same rows, the same answer."""

    @property
    def name(self) -> str:
        """Name of the space."""
        ...

    @property
    def space_digest(self) -> str:
        """Hash of what is asked."""
        ...

    @property
    def space_text(self) -> str:
        """The space as it was written."""
        ...

    @property
    def catalog_digest(self) -> str:
        """Hash of the loaded facts."""
        ...

    @property
    def code_version(self) -> str:
        """Package version, commit and whether it was changed."""
        ...

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """What may vary, in the order of display."""
        ...

    @property
    def objectives(self) -> tuple[tuple[str, Direction], ...]:
        """One to three metrics, each with its direction."""
        ...

    @property
    def rules(self) -> tuple[str, ...]:
        """Names of the constraints, in the order of their columns."""
        ...

    @property
    def batch_count(self) -> int:
        """Rows asked at once; part of what makes a study repeatable."""
        ...

    @property
    def seed(self) -> int:
        """Same seed, same trials."""
        ...

    @property
    def sampler(self) -> str | Mapping[str, Any]:
        """A name, or a name with options."""
        ...

    @property
    def baselines(self) -> tuple[tuple[str, Mapping[str, Value]], ...]:
        """Named rows that come first."""
        ...

    def evaluate(self, rows: Sequence[Mapping[str, Value]]) -> Evaluated:
        """Numbers for a batch of rows."""
        ...


@runtime_checkable
class Screener(Protocol):
    """A problem that can answer columns without details: what makes a sweep of millions fast."""

    def screen(self, columns: Mapping[str, np.ndarray[Any, Any]]) -> tuple[Array, Array]:
        """Objectives (n, k) and constraints (n, r) of n designs given as one column per parameter.

        A parameter whose condition fails is NaN (numbers) or "" (words) in its column.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """What is known of rows before they are evaluated.

    ``buildable`` (n,) tells which break no rule that can be judged so early, ``traits`` (n, k) are numbers that the
    objectives follow more smoothly than the parameters, logarithms where ratios count.
    """

    buildable: NDArray[np.bool_]
    traits: Array


@runtime_checkable
class Foreseer(Protocol):
    """A problem that knows something of a row at a small part of the cost of evaluating it."""

    def settled(self, rows: Sequence[Mapping[str, Value]]) -> list[dict[str, Value]]:
        """Rows as they are built after repair, each with a value for every parameter, whether it applies or not."""
        ...

    def foreseen(self, columns: Mapping[str, NDArray[Any]]) -> Foreseen:
        """What is known of rows as they are, given by columns as `Screener.screen` reads them."""
        ...


@runtime_checkable
class Explainer(Protocol):
    """A problem that can say more of a trial than it stored: displays and answers then say the same of what binds."""

    def explained(self, trial: Mapping[str, Any]) -> dict[str, Any]:
        """The trial with what binds it."""
        ...


def fidelity_of(problem: Problem) -> str:
    """How close to the truth a problem's values are, in one word: its attribute ``fidelity``, or ``model``.

    It is kept with every value. Values of two fidelities never meet: a study or sweep has one, and refuses the problem
    and the files of another. What one fidelity found is handed to another as designs, to be evaluated anew.

    Raises:
        StudyError: a word that cannot be kept.
    """
    found = getattr(problem, "fidelity", FIDELITY)
    if not (isinstance(found, str) and 1 <= len(found) <= 32):
        raise StudyError(f"{problem.name}: a fidelity is a word of at most 32 letters, not {found!r}")
    return found


class ProblemRecipe(Protocol):
    """A picklable callable that rebuilds the problem where it is called: once per worker."""

    def __call__(self) -> Problem:
        """The problem, built here."""
        ...


def check_evaluated(evaluated: Evaluated, count: int, problem: Problem) -> Evaluated:
    """Refuse an answer of the wrong shape or with numbers that are not finite: a bug in the model, said early."""
    shapes = (evaluated.values.shape, evaluated.constraints.shape)
    wanted = ((count, len(problem.objectives)), (count, len(problem.rules)))
    if shapes != wanted:
        raise ShapeError(f"{problem.name}: evaluate gave arrays {shapes}, wanted {wanted}")
    if not (np.isfinite(evaluated.values).all() and np.isfinite(evaluated.constraints).all()):
        raise ShapeError(f"{problem.name}: evaluate gave a number that is not finite")
    return evaluated
