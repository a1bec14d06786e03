"""The kept copy of the parsed catalog is only ever a shortcut."""

import json
from pathlib import Path

import pytest

from codesign import resources
from codesign.catalog import parsed as module
from codesign.catalog.parsed import cache_folder, digest_of, parsed
from codesign.yaml12 import read_yaml


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small catalog folder in the place of the shipped one, with an empty cache folder."""
    folder = tmp_path / "data"
    (folder / "calibration").mkdir(parents=True)
    (folder / "memory.yaml").write_text("hbm: {rate: 1e-6, big: 123456789.25, word: no}\n", encoding="utf-8")
    (folder / "calibration" / "law.yaml").write_text("group: {name: [1, .5, null]}\n", encoding="utf-8")
    monkeypatch.setenv("CODESIGN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(resources, "catalog_data", lambda: folder)
    module._parsed.cache_clear()
    return folder


def _kept() -> list[Path]:
    return sorted(cache_folder().glob("*.json"))


def test_a_second_process_reads_from_the_cache_what_the_first_parsed(shipped: Path) -> None:
    first = parsed(shipped)
    assert first == {name: read_yaml(shipped / name) for name in ("calibration/law.yaml", "memory.yaml")}
    module._parsed.cache_clear()
    assert len(_kept()) == 1
    assert parsed(shipped) == first


def test_changed_content_is_parsed_again(shipped: Path) -> None:
    parsed(shipped)
    (shipped / "memory.yaml").write_text("hbm: {rate: 2}\n", encoding="utf-8")
    assert parsed(shipped)["memory.yaml"] == {"hbm": {"rate": 2}}
    assert len(_kept()) == 2


@pytest.mark.parametrize("damage", ["", "[]", "{", json.dumps({"memory.yaml": {}})])
def test_a_damaged_copy_is_ignored(shipped: Path, damage: str) -> None:
    whole = parsed(shipped)
    _kept()[0].write_text(damage, encoding="utf-8")
    module._parsed.cache_clear()
    assert parsed(shipped) == whole


def test_without_a_usable_cache_folder_files_are_parsed(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = shipped.parent / "blocked"
    blocked.write_text("a file where a folder should be", encoding="utf-8")
    monkeypatch.setenv("CODESIGN_CACHE", str(blocked))
    assert parsed(shipped)["memory.yaml"]["hbm"]["rate"] == 1e-6


def test_the_digest_depends_on_names_and_content(shipped: Path) -> None:
    before = digest_of(shipped)
    (shipped / "memory.yaml").rename(shipped / "storage.yaml")
    assert digest_of(shipped) != before


@pytest.mark.usefixtures("shipped")
def test_only_the_shipped_catalog_is_kept(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "memory.yaml").write_text("{}", encoding="utf-8")
    assert parsed(other) == {"memory.yaml": {}}
    assert not _kept()
