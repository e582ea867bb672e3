"""`/version`; disc-014."""

import json

import pytest
from recorded_server import asked, recorded_answer, recorded_headers

from adapter import __version__
from adapter.serving.api.status import Answer
from adapter.serving.api.version import Version, of_release


def test_a_document_is_written_as_recorded() -> None:
    row = recorded_answer("disc-014")
    answer = Version(json.loads(row["body"])).answer(asked(row["path"]))
    assert answer == Answer(200, body=row["body"].encode(), headers=recorded_headers("disc-014"))


def test_ours_has_the_recorded_fields_in_their_order() -> None:
    recorded_fields = [
        name for name in json.loads(recorded_answer("disc-014")["body"]) if name[:3] not in ("emu", "min")
    ]
    recorded_fields.insert(1, "minor")
    assert list(of_release()) == recorded_fields
    assert of_release()["gitVersion"] == f"v{__version__}"


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("1.20.3", ("1", "20", "v1.20.3")),
        ("0.2.0rc1", ("0", "2", "v0.2.0-rc1")),
        ("0.2.0.dev4", ("0", "2", "v0.2.0-dev4")),
        ("0.2.0+site", ("0", "2", "v0.2.0-site")),
    ],
)
def test_a_release_is_written_as_a_semantic_version(release: str, expected: tuple[str, str, str]) -> None:
    document = of_release(release)
    assert (document["major"], document["minor"], document["gitVersion"]) == expected


def test_a_release_of_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a release must begin with three numbers, as in 1\.2\.3, got 'main'"):
        of_release("main")


@pytest.mark.parametrize("path", ["/version", "/version/", "/version//", "/version?pretty=false&watch=true"])
@pytest.mark.parametrize("accept", ["", "*/*", "application/json;as=Table", "text/html, application/json;q=0"])
def test_the_document_is_always_indented_json(path: str, accept: str) -> None:
    answer = Version({"major": "1"}).answer(asked(path, accept=accept))
    assert answer == Answer(200, body=b'{\n  "major": "1"\n}', headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("accept", ["text/html", "application/yaml", "application/*", "garbage"])
def test_who_does_not_take_json_is_refused(accept: str) -> None:
    answer = Version().answer(asked("/version", accept=accept))
    assert answer is not None
    assert answer.code == 406
    assert answer.document["message"] == "406: Not Acceptable\n\nAvailable representations: application/json"


@pytest.mark.parametrize(
    ("path", "method", "code"),
    [("/version", "HEAD", 405), ("/version", "POST", 405), ("/version/x", "GET", 404)],
)
def test_nothing_else_is_there(path: str, method: str, code: int) -> None:
    answer = Version().answer(asked(path, method))
    assert answer is not None
    assert (answer.code, answer.document["details"]) == (code, {})


@pytest.mark.parametrize("path", ["/versions", "/", "version"])
def test_another_path_is_not_answered(path: str) -> None:
    assert Version().answer(asked(path)) is None
