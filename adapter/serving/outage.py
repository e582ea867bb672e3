"""What is wrong with another server, told once while it lasts."""

from collections.abc import Callable
from typing import Any

from adapter.errors import AdapterError

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

    def attempt(self, act: Callable[[], object], *, is_grave: bool = False, **more: object) -> bool:
        """Do it, and tell of it. Returns whether it worked.

        What a thread does again and again is done through this: no error of one round ends the thread, for the next
        round may meet another world. One that nobody foresaw is told with its traceback.
        """
        try:
            act()
        except Exception as error:
            traceback = {} if isinstance(error, AdapterError) else {"exc_info": error}
            self.failed(told(error), is_grave=is_grave, **more, **traceback)
            return False
        self.worked()
        return True

    def failed(self, cause: str, *, is_grave: bool = False, **more: object) -> None:
        """An attempt failed. is_grave: somebody has to act. more: what else this line carries."""
        if cause not in self._causes and len(self._causes) < MOST_CAUSES:
            self._causes.add(cause)
            (self._log.error if is_grave else self._log.warning)(self._began, cause=cause, **self._about, **more)

    def worked(self) -> None:
        """An attempt succeeded."""
        if self._causes:
            self._log.info(self._over, **self._about)
        self._causes.clear()


def told(error: Exception) -> str:
    """An error in one line, its kind first where it is none of ours."""
    text = " ".join(str(error).split())
    return text if text and isinstance(error, AdapterError) else f"{type(error).__name__}: {text}".removesuffix(": ")
