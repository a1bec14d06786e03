"""The conventions, as code: names carry units, docstrings repeat them, facts have sources, the house has layers."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_origin, get_type_hints

import numpy as np
import pytest

import codesign
import codesign.cost
import codesign.model
from codesign.catalog import Catalog
from codesign.units import Array, Numeric, unit_of

ROOT = Path(codesign.__file__).parent
Function = Callable[..., Any]


def modules(*packages: Any) -> Iterator[Any]:
    for package in packages:
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            yield importlib.import_module(info.name)


def functions() -> Iterator[Function]:
    """Every public function of the model and cost packages, whole trees."""
    for module in modules(codesign.model, codesign.cost):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                yield function


def label(function: Function) -> str:
    return f"{function.__module__.removeprefix('codesign.')}.{function.__qualname__}"


def is_struct(hint: object) -> bool:
    return isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, tuple))


def is_chain(function: Function) -> bool:
    """A chain returns a sealed struct or several; a law returns one quantity."""
    hint = get_type_hints(function).get("return")
    return is_struct(hint) or get_origin(hint) in (tuple, list, dict)


def takes_structs(function: Function) -> bool:
    hints = get_type_hints(function)
    return any(is_struct(hints.get(name)) for name in inspect.signature(function).parameters)


EVERY = list(functions())
CHAINS = [function for function in EVERY if is_chain(function)]
LAWS = [function for function in EVERY if not is_chain(function)]
PLAIN = [function for function in LAWS if not takes_structs(function)]


def test_the_checks_below_look_at_the_whole_model() -> None:
    assert len(EVERY) > 100, "the walk lost the model"


@pytest.mark.parametrize("function", LAWS, ids=label)
def test_names_and_docstrings_agree_on_units(function: Function) -> None:
    doc = inspect.getdoc(function) or ""
    hints = get_type_hints(function)

    assert unit_of(function.__name__), "a law is named after what it returns, unit last"
    for name in inspect.signature(function).parameters:
        if is_struct(hints.get(name)):
            continue
        unit = unit_of(name)
        assert unit, f"{name}: no unit suffix"
        line = re.search(rf"^\s+{name}: (.*(?:\n\s{{8,}}.*)*)$", doc, re.MULTILINE)
        assert line, f"{name}: not in the docstring"
        assert f"[{unit}]" in line[1], f"{name}: the docstring does not say [{unit}]"
    assert f"[{unit_of(function.__name__)}]" in doc.split("Returns:")[-1]


@pytest.mark.parametrize("function", CHAINS, ids=label)
def test_the_fields_of_a_chains_struct_say_their_unit(function: Function) -> None:
    hint = get_type_hints(function).get("return")

    for field in fields(hint) if is_dataclass(hint) else ():
        assert unit_of(field.name) or not is_number(field.type), f"{field.name}: no unit suffix"


def is_number(hint: object) -> bool:
    return hint in (Numeric, Array, float)


@pytest.mark.parametrize("function", LAWS, ids=label)
def test_every_law_of_the_model_shows_an_example_and_cites_the_bibliography(
    function: Function, catalog: Catalog
) -> None:
    doc = inspect.getdoc(function) or ""

    assert ">>>" in doc
    assert cited(doc), "no Source: section"
    assert cited(doc) - {"definition"} <= set(catalog.sources)


def batch_arguments(function: Function, count: int) -> list[Any]:
    generator = np.random.default_rng(0)
    return [
        generator.uniform(0.05, 0.95, count)
        if unit_of(name) == "1"
        else generator.uniform(1.0, 100.0, count).round() + 1.0
        for name in inspect.signature(function).parameters
    ]


@pytest.mark.parametrize("function", PLAIN, ids=label)
@pytest.mark.parametrize("count", [1, 7, 64, 1000])
def test_a_batch_is_its_rows(function: Function, count: int) -> None:
    columns = batch_arguments(function, count)

    batch = np.broadcast_to(np.asarray(function(*columns), dtype=float), (count,))

    halves = [function(*(c[: count // 2] for c in columns)), function(*(c[count // 2 :] for c in columns))]
    parts = [
        np.broadcast_to(np.asarray(part, dtype=float), (size,))
        for part, size in zip(halves, [count // 2, count - count // 2], strict=True)
    ]
    assert np.array_equal(batch, np.concatenate(parts), equal_nan=True)
    for row in range(0, count, max(1, count // 5)):
        alone = np.asarray(function(*(c[row : row + 1] for c in columns)), dtype=float)
        assert np.array_equal(batch[row : row + 1], np.broadcast_to(alone, (1,)), equal_nan=True)


def test_nothing_in_the_bibliography_is_unused(catalog: Catalog) -> None:
    text = " ".join(path.read_text() for path in (ROOT / "catalog" / "data").rglob("*.yaml") if path.stem != "sources")
    used = set().union(*(cited(inspect.getdoc(function) or "") for function in EVERY))
    tests = " ".join(path.read_text() for path in Path(__file__).parent.rglob("*.py"))

    assert [key for key in catalog.sources if key not in used and key not in text and key not in tests] == []


def cited(doc: str) -> set[str]:
    """Keys at the head of the lines under ``Source:``."""
    _, _, block = doc.partition("Source:\n")
    return set(re.findall(r"^    ([a-z0-9][a-z0-9.-]*):", block, re.MULTILINE))


def imports(path: Path) -> set[str]:
    """Top-level names of everything a file imports, wherever in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("ray", {"study/workers.py"}),
        ("optuna.samplers", {"study/search.py"}),
        ("optuna.storages", {"store/trials.py"}),
        ("sqlalchemy", {"store/"}),
        ("pandas", set()),
    ],
)
def test_a_library_stays_in_its_room(library: str, allowed: set[str]) -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if any(name == library or name.startswith(library + ".") for name in imports(path))
    }

    assert {user for user in users if not any(user.startswith(room) for room in allowed)} == set()


FORBIDDEN = re.compile(r"np\.(vectorize|einsum|dot|matmul|inner|tensordot)\b|\s@\s")


@pytest.mark.parametrize(
    "path", sorted([*(ROOT / "model").rglob("*.py"), *(ROOT / "cost").rglob("*.py")]), ids=lambda p: p.name
)
def test_the_physics_uses_no_operation_whose_order_depends_on_the_batch(path: Path) -> None:
    code = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith(("@", "#")))

    assert not FORBIDDEN.search(code)


def test_nothing_runs_at_import_time() -> None:
    """No call at module level but definitions, constants of plain values and the typing helpers."""
    bad = {"open", "load_catalog", "create_engine", "now", "read_text", "init"}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.rglob("*.py")
        for statement in ast.parse(path.read_text()).body
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Expr)
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
        and (getattr(node.func, "id", None) in bad or getattr(node.func, "attr", None) in bad)
    ]

    assert found == []
