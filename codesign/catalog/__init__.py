"""Sourced technology facts. Nothing in this package computes."""

from codesign.catalog.load import Catalog, load_catalog
from codesign.catalog.schema import Constant, Fact, Source

__all__ = ["Catalog", "Constant", "Fact", "Source", "load_catalog"]
