"""A catalog file that its schema refuses: which file, line and key, what was wanted and what stands there."""

from pathlib import Path

from pydantic import ValidationError

from codesign.complaints import keys_in_file, placed, refusal
from codesign.errors import CatalogError
from codesign.yaml12 import read_document

_MOST = 20


def refused(path: Path, error: ValidationError) -> CatalogError:
    """The complaint about a file, one line per fault; the file is read again for the lines of its keys."""
    document = read_document(path, CatalogError)
    faults: dict[str, None] = {}
    for one in error.errors()[:_MOST]:
        keys = keys_in_file(one["loc"], document.data)
        faults[placed(path.name, document.line(keys), keys, refusal(one))] = None
    return CatalogError("\n".join(faults))
