"""Headers -> what they say of who asks; of the few controllers that ask most of the time they are read once."""

from dataclasses import dataclass

from adapter.serving.access import impersonation
from adapter.serving.access.frontproxy import FrontProxyHeaders, named_by
from adapter.serving.access.identity import Identity
from adapter.serving.access.kept import Kept, weight
from adapter.serving.api.request import Headers

_MOST_BYTES = 4 * 2**20  # some 1 000 callers with ten such headers each


@dataclass(frozen=True, slots=True)
class Said:
    """named: whom the aggregator's headers name, which is true beside its certificate alone. wanted: headers, those
    that ask to be somebody else among them."""

    named: Identity | None
    wanted: Headers


class Sayings:
    """What headers say. names: where the aggregator writes who asks.

    What is remembered hangs on these headers alone, all of them: a certificate is looked at anew at each request.
    """

    def __init__(self, names: FrontProxyHeaders) -> None:
        self.names = names
        self._beginnings = (*names.user, *names.uid, *names.group, *names.extra, impersonation.PREFIX)
        self._kept: Kept[tuple[tuple[str, str], ...], Said] = Kept(_MOST_BYTES)

    def of(self, headers: Headers) -> Said:
        """What they say, in one pass over them."""
        beginnings = self._beginnings
        picked = tuple([pair for pair in headers if pair[0].startswith(beginnings)])
        said = self._kept.get(picked)
        if said is None:
            wanted = [pair for pair in picked if pair[0].startswith(impersonation.PREFIX)]
            said = Said(named_by(self.names, picked), wanted)
            self._kept.put(picked, said, weight(text for pair in picked for text in pair))
        return said
