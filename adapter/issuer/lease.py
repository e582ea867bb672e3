"""Elect the replica that issues: the holder of a Lease of the cluster."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from adapter.issuer.objects import Api, ConflictError, Object, create, read, read_if_any, write

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class LeasePaths:
    """Where the Lease is, and the Secrets that own it: Kubernetes removes the Lease with the last of them."""

    lease: str
    owners: tuple[str, ...]


class Lease:
    """One holder among replicas that share no clock, by the rule of Kubernetes' own controllers.

    A replica takes the Lease when it has no holder, or when its record has not changed for `duration_s` of the
    replica's own clock. A write succeeds only on the version that was read. identity: of this replica. is_held: whether
    the last `hold` took or renewed it.
    """

    def __init__(
        self, api: Api, paths: LeasePaths, identity: str, duration_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._paths = paths
        self._identity = identity
        self._duration_s = duration_s
        self._clock = clock
        self._seen: tuple[object, float] = (None, 0.0)  # a record, and when it was first seen
        self.is_held = False

    def hold(self) -> bool:
        """Take or renew the Lease. Returns whether this replica holds it. Raises SourceError without an answer."""
        held, self.is_held = self.is_held, False
        try:
            found = read_if_any(self._api, self._paths.lease) or self._create()
        except ConflictError:
            return False  # another replica created it first
        spec = found.get("spec") or {}
        if not (spec.get("holderIdentity", "") in ("", self._identity) or self._has_expired(spec)):
            return False
        self.is_held = self._write(found, spec, self._identity)
        if self.is_held and not held:
            _log.info("this replica issues the certificates", lease=self._paths.lease, after=spec.get("holderIdentity"))
        return self.is_held

    def release(self) -> None:
        """Let another replica take the Lease at once. Raises SourceError without an answer."""
        if self.is_held:
            self.is_held = False
            found = read(self._api, self._paths.lease)
            spec = found.get("spec") or {}
            if spec.get("holderIdentity") == self._identity:
                self._write(found, spec, "")

    def _create(self) -> Object:
        """An empty Lease, or what another replica made of it meanwhile."""
        owners = [found for path in self._paths.owners if (found := read_if_any(self._api, path)) is not None]
        references = [
            {"apiVersion": "v1", "kind": "Secret", "name": each["metadata"]["name"], "uid": each["metadata"]["uid"]}
            for each in owners
        ]
        metadata = {"name": self._paths.lease.rpartition("/")[2], "ownerReferences": references}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        return create(self._api, self._paths.lease, lease)

    def _has_expired(self, spec: Object) -> bool:
        record = (spec.get("holderIdentity"), spec.get("renewTime"))
        if record != self._seen[0]:
            self._seen = record, self._clock()
        return self._clock() - self._seen[1] >= self._duration_s

    def _write(self, found: Object, spec: Object, holder: str) -> bool:
        """Whether no other replica wrote first."""
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        is_new = spec.get("holderIdentity") != holder
        is_transition = is_new and holder != "" and bool(spec)  # the first holder and a release are none
        record: dict[str, Any] = {
            "holderIdentity": holder,
            "leaseDurationSeconds": math.ceil(self._duration_s),
            "acquireTime": now if is_new else spec.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": spec.get("leaseTransitions", 0) + is_transition,
        }
        try:
            write(self._api, self._paths.lease, found, {"spec": record})
        except ConflictError:
            return False
        return True
