"""codesign: from SerDes, protocol, buffers and memory to the cost of a token.

Names below load what they need when first used, so that ``import codesign`` stays light.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Study", "__version__", "evaluate", "load_catalog", "load_space"]

if TYPE_CHECKING:
    from codesign.catalog import load_catalog
    from codesign.space import load_space
    from codesign.study.study import Study
    from codesign.views.designs import evaluated as evaluate

_HOMES = {
    "Study": ("codesign.study.study", "Study"),
    "evaluate": ("codesign.views.designs", "evaluated"),
    "load_catalog": ("codesign.catalog", "load_catalog"),
    "load_space": ("codesign.space", "load_space"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'codesign' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    return getattr(import_module(module), attribute)
