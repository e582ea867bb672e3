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
    """One question, comparable. The selectors are those of the query, "" where they do not matter: then it is about
    all there is. What of them does not parse is left out, for it could only have narrowed the question."""

    identity: Identity
    attributes: Attributes
    label_selector: str = ""
    field_selector: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """All that it consists of. The path of the attributes has their group and version in it."""
        what = self.attributes
        parts = (what.path, what.namespace, what.resource, what.subresource, what.name)
        return (*self.identity.texts, *parts, self.label_selector, self.field_selector)


def asked(identity: Identity, attributes: Attributes, query: Mapping[str, str]) -> Asked:
    """The question of a request. query: the first value of each parameter."""
    if not attributes.is_resource or attributes.verb not in _SELECTING:
        return Asked(identity, attributes)
    return Asked(identity, attributes, query.get("labelSelector", ""), query.get("fieldSelector", ""))


def spec(question: Asked) -> Document:
    """The document; what is empty is left out."""
    wanted = question.attributes
    if wanted.is_resource:
        what = {"resourceAttributes": _resource(question)}
    else:
        what = {"nonResourceAttributes": _said({"path": wanted.path, "verb": wanted.verb})}
    caller = question.identity
    extra = {key: list(values) for key, values in sorted(caller.extra.items())}
    who = {"user": caller.user, "groups": list(caller.groups), "extra": extra, "uid": caller.uid}
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
