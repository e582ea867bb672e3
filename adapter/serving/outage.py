"""What is wrong with another server, told once while it lasts."""

from typing import Any

MOST_CAUSES = 10  # told of one outage: a server that words each of its errors anew fills no log


class Outage:
    """Logs each cause once until it is over, and that it is over.

    log: of structlog. began, over: the two sentences. about: what else each line carries.
    """

    def __init__(self, log: Any, began: str, over: str, **about: object) -> None:
        self._log = log
        self._began = began
        self._over = over
        self._about = about
        self._causes: set[str] = set()

    @property
    def lasts(self) -> bool:
        """Whether the last attempt failed."""
        return bool(self._causes)

    def failed(self, cause: str) -> None:
        """An attempt failed."""
        if cause not in self._causes and len(self._causes) < MOST_CAUSES:
            self._causes.add(cause)
            self._log.warning(self._began, cause=cause, **self._about)

    def worked(self) -> None:
        """An attempt succeeded."""
        if self._causes:
            self._log.info(self._over, **self._about)
        self._causes.clear()


def told(error: Exception) -> str:
    """An error in one line, its kind first."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
