"""Every error this package raises on purpose, one root, each with its process exit code."""

import difflib
from collections.abc import Iterable


class CodesignError(Exception):
    """Root of all errors raised on purpose. The message is one paragraph a user can act on."""

    exit_code = 1


class UsageError(CodesignError, ValueError):
    """A command or call was asked for something it does not offer."""

    exit_code = 2


class SpaceError(CodesignError, ValueError):
    """A space or design file breaks the grammar, or names what the catalog or the model does not have."""

    exit_code = 3


class CatalogError(CodesignError, ValueError):
    """A technology fact is missing, unsourced, or disagrees with itself."""

    exit_code = 4


class CaseError(CodesignError, ValueError):
    """A file of measured or reference cases cannot be read."""

    exit_code = 5


class StoreError(CodesignError, RuntimeError):
    """The database cannot be used: another application's, newer, locked, read-only or full."""

    exit_code = 6


class StudyError(CodesignError, RuntimeError):
    """A study cannot be created, resumed or found as asked."""

    exit_code = 7


class InfeasibleError(CodesignError, RuntimeError):
    """Nothing that was tried can be built; the message says which rules bind."""

    exit_code = 8


class ExecutorError(CodesignError, RuntimeError):
    """Workers could not be started or were lost beyond repair."""

    exit_code = 9


class ShapeError(CodesignError, ValueError):
    """Columns of one batch do not share one length: a bug in the caller."""


def nearest(name: str, known: Iterable[str]) -> str:
    """A ready-made clause that points from a wrong name to the nearest valid one.

    >>> nearest("hbm33", ["hbm3", "ddr5"])
    "; did you mean 'hbm3'?"
    >>> nearest("zzz", ["hbm3", "ddr5"])
    '; valid: ddr5, hbm3'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    shown = ", ".join(names[:12]) + (f", ... ({len(names)} in all)" if len(names) > 12 else "")
    return f"; valid: {shown}" if names else ""
