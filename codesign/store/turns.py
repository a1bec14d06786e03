"""Writers of one SQLite file wait in the kernel, not by asking again and again.

SQLite's own waiting asks every tenth of a second whether the lock happens to be free. With thirty processes at work it
rarely is, and some waited in vain for half a minute. A lock on the file of the write-ahead log, which SQLite itself
never locks, wakes them when it is given back. It is a courtesy among processes of ours: what keeps the data whole is
SQLite's own lock, so whoever waits too long here, or finds no log, simply goes on to ask for that.
"""

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def turn(log: Path, most_s: float) -> Iterator[None]:
    """Wait for one's turn, but no longer than this."""
    file = _opened(log)
    if file is None:
        yield
        return
    waiter = _Waiter(file)
    try:
        waiter.wait(most_s)
        yield
    finally:
        waiter.leave()


def _opened(log: Path) -> int | None:
    try:
        return os.open(log, os.O_RDONLY)
    except OSError:  # nobody wrote yet, or the file system has no such thing
        return None


class _Waiter:
    """A place in the queue. Locks of this kind cannot be waited for with a limit, so a thread waits in our stead."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._changing = threading.Lock()
        self._waiting = self._left = False

    def wait(self, most_s: float) -> None:
        """Until the lock is ours or the time is over."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._waiting = True
            thread = threading.Thread(target=self._stand, daemon=True)
            thread.start()
            thread.join(most_s)
        except OSError:  # a file system without such locks
            return

    def leave(self) -> None:
        """Give the lock back now, or as soon as it would be ours."""
        with self._changing:
            self._left = True
            if not self._waiting:
                os.close(self._file)

    def _stand(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX)
        with self._changing:
            self._waiting = False
            if self._left:
                os.close(self._file)
