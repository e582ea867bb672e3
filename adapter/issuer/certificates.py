"""The certificates of the servers: issued and rotated by the leader, copied to files by every replica."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from adapter.apiserver.certificates import has_signed
from adapter.apiserver.cluster_api import SOURCE
from adapter.errors import SourceError
from adapter.file_replacement import replace_file
from adapter.issuer.keys import KeyPair, bundle_pem, new_authority, new_leaf, read_bundle, read_pair
from adapter.issuer.objects import Api, data_of, read
from adapter.issuer.state import CA, CertificateObjects, ObjectPaths, leaf_of
from adapter.issuer.steps import Bundle, IssueLeaf, Lifetimes, MakeAuthority, Publish, Step, Trust, next_step

_MOST_STEPS = 10  # in one round; a first one has five

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Files:
    """The files that the servers read. certificate: with its key in one file, so that both change at once."""

    certificate: Path
    authorities: Path


@dataclass(frozen=True, slots=True)
class Clocks:
    """The two clocks of a rotation. unix_s: the time of certificates. timer_s: seconds that only grow."""

    unix_s: Callable[[], float] = time.time
    timer_s: Callable[[], float] = time.monotonic


class Certificates:
    """Issues and rotates the certificates at `paths`, and copies them to `files`."""

    def __init__(
        self, api: Api, paths: ObjectPaths, files: Files, lifetimes: Lifetimes, clocks: Clocks = Clocks()
    ) -> None:
        self._api = api
        self._paths = paths
        self._files = files
        self._lifetimes = lifetimes
        self._clocks = clocks
        self._is_issued = False
        self._published: tuple[Bundle, float] | None = None  # what all objects have, and since when this replica knows

    def is_issued(self) -> bool:
        """Whether the file has an issued certificate."""
        return self._is_issued

    def begin(self) -> None:
        """Let the server start before a certificate is issued: with one that no client trusts."""
        pem, authorities = _content(self._files.certificate), _content(self._files.authorities)
        leaf = read_pair(pem, pem)
        self._is_issued = _is_trusted(leaf, read_bundle(authorities))
        if leaf is None:
            now_s = self._clocks.unix_s()
            unknown = new_authority(now_s, self._lifetimes.leaf_s)
            self._write_file(new_leaf(unknown, self._paths.own_host, now_s, self._lifetimes.leaf_s))

    def reconcile(self) -> None:
        """Take every step that is due. Raises SourceError."""
        for _ in range(_MOST_STEPS):
            objects = CertificateObjects(self._api, self._paths)
            step = next_step(objects.state(self._published_for_s(objects)), self._lifetimes, self._clocks.unix_s())
            if step is None:
                return
            self._apply_step(step, objects)

    def on_lost_lease(self) -> None:
        """Forget what this replica published as the leader: another replica rotates now."""
        self._published = None

    def sync_files(self) -> None:
        """Copy the CAs and the certificate to the files. Raises SourceError if one of them is unusable."""
        data = data_of(read(self._api, self._paths.own))
        leaf, trusted = leaf_of(data), read_bundle(data.get(CA, b""))
        # A new CA without a certificate yet: the other server's may come first.
        if trusted:
            replace_file(self._files.authorities, bundle_pem(trusted), is_private=True)
        if leaf is None or not _is_trusted(leaf, trusted):
            raise SourceError(SOURCE, f"{self._paths.own}: expected a certificate and its CA, got no usable ones")
        self._write_file(leaf)
        self._is_issued = True

    def _published_for_s(self, objects: CertificateObjects) -> float:
        now_s = self._clocks.timer_s()
        if any(bundle != objects.trusted for bundle in objects.published().values()):
            self._published = None
        elif self._published is None or self._published[0] != objects.trusted:
            self._published = objects.trusted, now_s
        return 0.0 if self._published is None else now_s - self._published[1]

    def _apply_step(self, step: Step, objects: CertificateObjects) -> None:
        now_s = self._clocks.unix_s()
        match step:
            case MakeAuthority(keep):
                new = new_authority(now_s, self._lifetimes.authority_s)
                objects.write_authority(new, (new.certificate, *keep))
                _log.info("made a CA", secret=self._paths.own, also_trusted=len(keep))
            case Trust(bundle):
                objects.write_authority(objects.signer(), bundle)
                _log.info("no certificate of an older CA is left; trusting the newest alone", secret=self._paths.own)
            case Publish(paths):
                for path in paths:
                    objects.publish(path)
                _log.info("published the CAs", paths=paths, count=len(objects.trusted))
            case IssueLeaf(host):
                objects.write_leaf(host, new_leaf(objects.signer(), host, now_s, self._lifetimes.leaf_s))
                _log.info("issued a certificate", host=host)

    def _write_file(self, leaf: KeyPair) -> None:
        content = bundle_pem([leaf.certificate]) + leaf.key_pem()
        replace_file(self._files.certificate, content, is_private=True)


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _is_trusted(leaf: KeyPair | None, bundle: Bundle) -> bool:
    return leaf is not None and any(has_signed(each, leaf.certificate) for each in bundle)
