"""docs/model.md is the model: every law stands on it, with its source, and it names nothing that is not there."""

import inspect
import re
from pathlib import Path

from codesign.catalog import Catalog
from codesign.resources import case_data, catalog_data
from tests.test_conventions import EVERY, ROOT, cited

PAGE = (ROOT.parent / "docs" / "model.md").read_text()
WORDS = set(re.findall(r"`([a-z0-9_]+)`", PAGE))


def test_every_law_and_chain_is_on_the_page() -> None:
    assert [f"{law.__module__}.{law.__name__}" for law in EVERY if law.__name__ not in WORDS] == []


def test_every_file_of_the_physics_is_on_the_page() -> None:
    files = {Path(str(inspect.getsourcefile(law))).relative_to(ROOT.parent).as_posix() for law in EVERY}

    assert [name for name in sorted(files) if f"`{name}`" not in PAGE] == []


def test_what_a_law_cites_is_cited_on_the_page() -> None:
    cited_here = {key.strip() for group in re.findall(r"\[([^\]]+)\]", PAGE) for key in group.split(",")}
    keys = set().union(*(cited(inspect.getdoc(law) or "") for law in EVERY)) - {"definition"}

    assert sorted(keys - cited_here) == []


def test_every_source_on_the_page_is_in_the_bibliography(catalog: Catalog) -> None:
    body = PAGE.partition("## 1. Link")[2]
    groups = re.findall(r"\[([a-z][^\]]*)\](?!\()", re.sub(r"```.*?```", "", body, flags=re.DOTALL))
    keys = {key.strip() for group in groups for key in group.split(",")}

    assert sorted(key for key in keys if key not in catalog.sources and key != "*def*") == []


def test_every_constant_and_data_file_of_the_page_exists_and_every_calibration_is_named() -> None:
    constants = set(re.findall(r"\bcal/([a-z_]+)", PAGE))
    calibration = {path.stem for path in (catalog_data() / "calibration").glob("*.yaml")}
    places = {"data": case_data(), "ref": case_data() / "reference", "ker": case_data() / "kernels"}
    named = re.findall(r"(?<![\w/])(data|ref|ker)/([a-z_]+)", PAGE)

    assert constants == calibration
    assert [f"{short}/{name}" for short, name in named if not (places[short] / f"{name}.csv").exists()] == []
