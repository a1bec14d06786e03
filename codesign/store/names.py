"""Names of studies and sweeps: they become folders, files and words of commands, so one pattern holds for all."""

import re

from codesign.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def check_name(what: str, name: str) -> None:
    """Refuse a new name that is no plain word; what a database has already is opened under any name.

    >>> check_name("sweep", "links-2026.b")

    Raises:
        UsageError: says what it got and what would do.
    """
    if not _NAME.fullmatch(name):
        wanted = "up to 100 letters, digits, '_', '-' and '.', a letter or digit first"
        raise UsageError(f"a {what} cannot be named {name!r}; wanted {wanted}")
