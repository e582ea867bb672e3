"""Who asks for what -> the `spec` of a SubjectAccessReview, as Go's servers write it (apiserver, plugin webhook)."""

from collections.abc import Mapping
from typing import NamedTuple

from adapter.serving.access.identity import Identity
from adapter.serving.api import fields, selectors
from adapter.serving.api.attributes import Attributes
from adapter.serving.api.status import Document

_SELECTING = ("list", "watch", "deletecollection")
_OPERATORS = {"in": "In", "notin": "NotIn", "exists": "Exists", "absent": "DoesNotExist"}


class Asked(NamedTuple):
    """One question, comparable. extra: the identity's, sorted. The selectors are those of the query, "" where they do
    not matter; what of them does not parse is left out, for it could only have narrowed the question."""

    user: str
    groups: tuple[str, ...]
    uid: str
    extra: tuple[tuple[str, tuple[str, ...]], ...]
    attributes: Attributes
    label_selector: str
    field_selector: str

    @property
    def widest(self) -> "Asked":
        """The same question of all there is: who may read everything may read what a selector picks."""
        selecting = self.label_selector or self.field_selector
        return self._replace(label_selector="", field_selector="") if selecting else self

    def size(self) -> int:
        """Characters of it that the caller chooses."""
        chosen = self.attributes
        parts = (chosen.path, chosen.namespace, chosen.resource, chosen.subresource, chosen.name)
        about = [text for key, values in self.extra for text in (key, *values)]
        who = (self.user, self.uid, *self.groups, *about)
        return sum(map(len, (*parts, *who, self.label_selector, self.field_selector)))


def asked(identity: Identity, attributes: Attributes, query: Mapping[str, str]) -> Asked:
    """The question of a request. query: the first value of each parameter."""
    extra = tuple(sorted(identity.extra.items())) if identity.extra else ()
    by_label = by_field = ""
    if query and attributes.is_resource and attributes.verb in _SELECTING:
        by_label, by_field = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return Asked(identity.user, identity.groups, identity.uid, extra, attributes, by_label, by_field)


def spec(question: Asked) -> Document:
    """The document; what is empty is left out."""
    wanted = question.attributes
    if wanted.is_resource:
        what = {"resourceAttributes": _resource(question)}
    else:
        what = {"nonResourceAttributes": _said({"path": wanted.path, "verb": wanted.verb})}
    extra = {key: list(values) for key, values in question.extra}
    who = {"user": question.user, "groups": list(question.groups), "extra": extra, "uid": question.uid}
    return what | _said(who)


def _resource(question: Asked) -> Document:
    names = ("namespace", "verb", "group", "version", "resource", "subresource", "name")
    selecting = {"fieldSelector": _fields(question.field_selector), "labelSelector": _labels(question.label_selector)}
    plain = {name: getattr(question.attributes, name) for name in names}
    return _said(plain) | {name: {"requirements": terms} for name, terms in selecting.items() if terms}


def _said(document: Document) -> Document:
    return {key: value for key, value in document.items() if value}


def _labels(text: str) -> list[Document]:
    """`>` and `<` have no operator in a review."""
    try:
        terms = sorted(selectors.parse(text).requirements, key=lambda term: term.key)
    except selectors.SelectorError:
        return []
    return [
        _said({"key": term.key, "operator": _OPERATORS[term.operator], "values": list(term.values)})
        for term in terms
        if term.operator in _OPERATORS
    ]


def _fields(text: str) -> list[Document]:
    try:
        terms = fields.parse(text)
    except fields.FieldSelectorError:
        return []
    return [{"key": t.field, "operator": "In" if t.is_equal else "NotIn", "values": [t.value]} for t in terms]
