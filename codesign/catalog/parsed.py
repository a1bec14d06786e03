"""The YAML of a catalog folder as plain data, parsed once per content.

Parsing is most of the time of a cold start, so the shipped catalog is kept as JSON in the user's cache folder, under
the hash of the files it came from. It is only a shortcut: what is read from it passes the same schema as the files,
other content has another name, and where the folder cannot be used the files are parsed.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from codesign import resources, yaml12

Data = Mapping[str, Any]
_KEPT = 4


def digest_of(folder: Path) -> str:
    """Hash over every data file, so that a study knows which facts it was run on."""
    hasher = hashlib.sha256()
    for path in _files(folder):
        hasher.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return hasher.hexdigest()[:16]


def parsed(folder: Path) -> Data:
    """What every YAML file of a folder says, by its path inside the folder.

    Raises:
        YamlError: a file is not YAML.
    """
    return _parsed(folder, digest_of(folder))


@lru_cache(maxsize=_KEPT)
def _parsed(folder: Path, digest: str) -> Data:
    if folder != resources.catalog_data():
        return _read(folder)
    reader = hashlib.sha256(Path(yaml12.__file__).read_bytes()).hexdigest()[:16]
    kept = cache_folder() / f"catalog-{digest}-{reader}.json"
    names = {path.relative_to(folder).as_posix() for path in _files(folder)}
    try:
        data = json.loads(kept.read_bytes())
        if isinstance(data, dict) and set(data) == names:
            return data
    except (OSError, ValueError):
        pass
    fresh = _read(folder)
    if digest_of(folder) == digest:  # not changed while it was read
        _keep(kept, json.dumps(fresh))
    return fresh


def cache_folder() -> Path:
    """Where parsed data is kept: ``CODESIGN_CACHE``, else the user's cache folder."""
    if own := os.environ.get("CODESIGN_CACHE"):
        return Path(own)
    users = os.environ.get("XDG_CACHE_HOME")
    return (Path(users) if users else Path(os.path.expanduser("~")) / ".cache") / "codesign"


def _read(folder: Path) -> Data:
    return {path.relative_to(folder).as_posix(): yaml12.read_yaml(path) for path in _files(folder)}


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.yaml"))


def _keep(path: Path, text: str) -> None:
    """Write beside, then rename, so that no reader sees half of it; a few versions stay."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        os.replace(file.name, path)
        for old in sorted(path.parent.glob("catalog-*.json"), key=lambda p: p.stat().st_mtime)[:-_KEPT]:
            old.unlink(missing_ok=True)
    except OSError:
        return
