"""What each server names itself is compared under our names."""

from conformance.asking import Caller
from conformance.recording import Answered, Asked, Outcome, Row
from conformance.renaming import renamed

LIST = b'{"serverAddress":":16444"}'


class Scripted(Caller):
    """A server on port 40001 that answers every path with an ETag of its own. asked: what it was asked."""

    def __init__(self) -> None:
        self.port = 40001
        self.asked: list[Asked] = []

    def ask(self, asked: Asked) -> Outcome:
        self.asked.append(asked)
        return Answered(200, {"etag": f'"ours{asked.uri}"'}, b"")


def row(uri: str = "/apis", body: bytes | None = b"", etag: str = "", **asked: str) -> Row:
    sent = tuple((name.replace("_", "-"), value) for name, value in asked.items())
    return Row("some-001", Asked("GET", uri, "admin", sent), Answered(200, {"etag": etag} if etag else {}, body))


def answer(rows: list[Row], place: int = -1) -> Answered:
    outcome = renamed(rows, Scripted())[place].outcome
    assert isinstance(outcome, Answered)
    return outcome


def test_the_recorded_port_becomes_ours() -> None:
    assert answer([row(body=LIST)]).body == b'{"serverAddress":":40001"}'


def test_the_port_is_known_from_any_row() -> None:
    assert answer([row(body=LIST), row(body=b"at :16444")]).body == b"at :40001"


def test_without_the_list_of_groups_no_port_is_known() -> None:
    assert answer([row(body=b"at :16444")]).body == b"at :16444"


def test_an_etag_becomes_ours_of_the_same_document() -> None:
    assert answer([row("/a", etag='"theirs"')]).headers["etag"] == '"ours/a"'


def test_who_has_their_document_is_taken_to_have_ours() -> None:
    rows = renamed([row("/a", etag='"theirs"'), row("/a", If_None_Match='"theirs"')], Scripted())
    assert rows[1].asked.header("if-none-match") == '"ours/a"'


def test_an_etag_in_a_path_becomes_ours() -> None:
    assert renamed([row("/a", etag='"theirs"'), row("/b?hash=theirs")], Scripted())[1].asked.uri == "/b?hash=ours/a"


def test_an_etag_is_asked_for_once_and_without_conditions() -> None:
    caller = Scripted()
    renamed([row("/a", etag='"theirs"', If_None_Match='"theirs"', Accept="*/*"), row("/b", etag='"theirs"')], caller)
    assert caller.asked == [Asked("GET", "/a", "admin", (("Accept", "*/*"),))]


def test_a_body_that_was_not_kept_stays_unknown() -> None:
    assert answer([row(body=None)]).body is None
