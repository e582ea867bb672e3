"""May they do that: SubjectAccessReviews of the cluster's API, remembered for a short time."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from adapter.errors import SourceError
from adapter.serving.access.answers import Answers, Terms
from adapter.serving.access.asking import Persistence, ask
from adapter.serving.access.cluster import SOURCE, ClusterApi
from adapter.serving.access.identity import MASTERS, Identity
from adapter.serving.access.kept import weight
from adapter.serving.access.review_spec import Asked, spec
from adapter.serving.api.attributes import Attributes

PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
PERSISTENCE = Persistence(deadline_s=3.0)
# For the kubelet, which has no credential. Single checks, as /livez/ping, are not among them.
ALWAYS_ALLOWED = ("/healthz", "/livez", "/readyz")


@dataclass(frozen=True, slots=True)
class Decision:
    """reason: the cluster's, often empty."""

    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)


class _Status(msgspec.Struct):
    allowed: bool
    denied: bool = False
    reason: str = ""


class _Review(msgspec.Struct):
    status: _Status


def needs_none(identity: Identity, attributes: Attributes) -> bool:
    """Whether it is allowed without a review: masters, whom the cluster allows everything, and probes."""
    return MASTERS in identity.groups or (not attributes.is_resource and attributes.path in ALWAYS_ALLOWED)


class Reviews:
    """Decisions, each remembered for ten seconds whether it allows or denies; a right that is taken away is gone so
    soon. clock: monotonic seconds."""

    def __init__(
        self, api: ClusterApi, persistence: Persistence = PERSISTENCE, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api = api
        self._persistence = persistence
        terms = Terms("access reviews", persistence.deadline_s)
        self._answers: Answers[Asked, Decision] = Answers(terms, lambda question, _: weight(question.texts), clock)

    def decide(self, question: Asked, *, patient: bool) -> Decision:
        """Whether they may. Raises SourceError where the cluster does not say, MustWait."""
        return self._answers.get(question, lambda ends_s: self._asked(question, ends_s), patient=patient)

    def close(self) -> None:
        """Ask nothing more."""
        self._answers.close()

    def _asked(self, question: Asked, ends_s: float) -> Decision:
        body = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec(question)}
        what = "post subjectaccessreviews.authorization.k8s.io"
        answer = ask(lambda left_s: self._api.post(PATH, body, left_s), what, self._persistence, ends_s)
        try:
            status = msgspec.convert(answer, _Review).status
        except msgspec.ValidationError as error:
            raise SourceError(SOURCE, f"expected a SubjectAccessReview: {error}") from error
        if status.allowed and status.denied:
            raise SourceError(SOURCE, "webhook subject access review returned both allow and deny response")
        return Decision(status.allowed, status.reason)
