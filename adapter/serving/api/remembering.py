"""What was made of a text is remembered: callers ask for the same, again and again."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

FEW_PARTS = 8

_Work = TypeVar("_Work", bound=Callable[..., Any])


def remembered(most: int, longest: int, parts: str = "") -> Callable[[_Work], _Work]:
    """Makes a function remember what it made of a text, its first argument, and of little else.

    Strangers fill this memory with what they like, before it is known who they are. So it holds what was made of `most`
    texts of at most `longest` characters; and where each part of a text becomes something larger, of texts with at most
    FEW_PARTS. parts: what stands between them. What is longer is made each time anew.
    """

    def remembering(make: _Work) -> _Work:
        memory = lru_cache(maxsize=most)(make)

        @wraps(make)
        def remember(text: str, *more: Any) -> Any:
            if len(text) > longest or (parts and text.count(parts) >= FEW_PARTS):
                return make(text, *more)
            return memory(text, *more)

        return cast("_Work", remember)

    return remembering
