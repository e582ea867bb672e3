"""Liveness, readiness and their checks. Cases 54 and 73; disc-016 to disc-020."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_server import INFORMERS, PROBES, asked, body_of, passing, recorded_answer, recorded_headers

from adapter.serving.api.probes import FIRST_SNAPSHOT_S, Checks, Findings, Probes, Readiness
from adapter.serving.api.status import Answer

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def never_asked() -> bool:
    raise AssertionError("this check is excluded")


def probes(**checks: bool) -> Probes:
    """The same checks for everything, each with its result."""
    given_results: Checks = {name: (lambda passed=passed: passed) for name, passed in checks.items()}
    return Probes(given_results, given_results, given_results)


def ready(readiness: Readiness) -> tuple[int, str]:
    answer = Probes.of(readiness).answer(asked("/readyz"))
    return (answer.code if answer else 0), body_of(answer)


@pytest.mark.parametrize("name", ["disc-016", "disc-017", "disc-018", "disc-020", "auth-166"])
def test_the_answer_is_the_recorded_one(name: str) -> None:
    """Case 54, as far as nobody is asked who he is."""
    row = recorded_answer(name)
    answer = PROBES.answer(asked(row["path"], row["method"], **row["request_headers"]))
    assert answer == Answer(row["status"], body=row["body"].encode(), headers=recorded_headers(name))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", ["/healthz", f"/readyz/{INFORMERS}"])
def test_every_method_is_answered(path: str, method: str) -> None:
    assert body_of(PROBES.answer(asked(path, method, accept="text/html"))) == "ok"


@pytest.mark.parametrize(
    "path",
    ["/healthz/", "/healthz/nope", "/healthz/ping/", "/healthz//ping", "/healthz/shutdown", "/statusz", "/", "*"],
)
def test_what_is_no_check_is_no_probe(path: str) -> None:
    assert PROBES.answer(asked(path)) is None


@pytest.mark.parametrize("query", ["verbose", "verbose=false", "verbose=&exclude=", "x=y&verbose=1"])
def test_verbose_counts_by_being_there(query: str) -> None:
    text = body_of(probes(ping=True, sync=True).answer(asked(f"/livez?{query}")))
    assert text.startswith("[+]ping ok\n[+]sync ok\n")
    assert text.endswith("livez check passed\n")


@pytest.mark.parametrize("query", ["", "?verbose"])
def test_a_check_that_fails_is_named_without_the_reason(query: str) -> None:
    answer = probes(ping=True, sync=False).answer(asked(f"/readyz{query}"))
    text = "[+]ping ok\n[-]sync failed: reason withheld\nreadyz check failed\n"
    headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
    assert answer == Answer(500, body=text.encode(), headers=headers)


def test_one_check_can_be_asked_for() -> None:
    answer = probes(ping=True, sync=False).answer(asked("/readyz/sync"))
    assert answer is not None
    assert (answer.code, body_of(answer)) == (500, "internal server error: sync does not pass\n")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("query", "lines"),
    [
        ("exclude=sync", ["[+]ping ok", "[+]sync excluded: ok"]),
        ("exclude=ping&exclude=sync", ["[+]ping excluded: ok", "[+]sync excluded: ok"]),
        ("exclude=sync&exclude=%73ync", ["[+]ping ok", "[+]sync excluded: ok"]),
        (
            "exclude=sync&exclude=b&exclude=a",
            [
                "[+]ping ok",
                "[+]sync excluded: ok",
                'warn: some health checks cannot be excluded: no matches for "a","b"',
            ],
        ),
    ],
)
def test_a_check_that_is_excluded_is_not_made(query: str, lines: list[str]) -> None:
    checks: Checks = {"ping": lambda: True, "sync": never_asked}
    answer = Probes(checks, checks, checks).answer(asked(f"/healthz?verbose&{query}"))
    assert body_of(answer).splitlines() == [*lines, "healthz check passed"]


def test_a_name_that_cannot_be_excluded_changes_no_result() -> None:
    assert body_of(probes(ping=True).answer(asked("/healthz?exclude=nope"))) == "ok"
    failed = probes(ping=False).answer(asked("/healthz?exclude=nope"))
    assert failed is not None
    assert failed.code == 500


@given(st.lists(st.sampled_from(["ping", "log", "sync", "hook/one", "nope"])))
def test_a_probe_passes_when_all_that_is_not_excluded_does(excluded: list[str]) -> None:
    results = {"ping": True, "log": False, "sync": True, "hook/one": False}
    query = "&".join(f"exclude={name}" for name in excluded)
    answer = probes(**results).answer(asked(f"/readyz?{query}"))
    assert answer is not None
    assert (answer.code == 200) == all(results[name] or name in excluded for name in results)


@given(st.dictionaries(st.text(min_size=1), st.booleans(), min_size=1))
def test_every_path_that_is_listed_answers(results: dict[str, bool]) -> None:
    some = probes(**results)
    assert [request for request in map(asked, PROBES.paths()) if PROBES.answer(request) is None] == []
    assert len(some.paths()) == 3 * (1 + len(results))


def test_the_recorded_paths_are_those_of_its_checks() -> None:
    listed = [
        path for path in recorded_answer("disc-001")["body"].split('"') if path[:5] in ("/heal", "/live", "/read")
    ]
    assert sorted(PROBES.paths()) == listed


def test_without_a_snapshot_a_server_waits_for_the_first_but_not_for_ever() -> None:
    """Case 73: discovery answers while every source is down, and for that a server has to be ready."""
    now = [0.0]
    readiness = Readiness(lambda: False, clock=lambda: now[0])
    code, text = ready(readiness)
    assert code == 500
    assert "[-]first-snapshot failed" in text
    now[0] = FIRST_SNAPSHOT_S
    assert ready(readiness) == (200, "ok")


def test_with_a_snapshot_a_server_is_ready_at_once() -> None:
    assert ready(Readiness(lambda: True)) == (200, "ok")


def test_a_server_that_stops_is_unready_and_alive() -> None:
    readiness = Readiness(lambda: True)
    readiness.stop()
    code, text = ready(readiness)
    assert (code, text.splitlines()[-2]) == (500, "[-]shutdown failed: reason withheld")
    assert body_of(Probes.of(readiness).answer(asked("/livez"))) == "ok"


def test_liveness_asks_what_it_is_told_to_and_readiness_does_not() -> None:
    alive = [True]
    server = Probes.of(Readiness(lambda: True), {"publishing": lambda: alive[0]})
    assert body_of(server.answer(asked("/livez?verbose"))) == "[+]ping ok\n[+]publishing ok\nlivez check passed\n"
    alive[0] = False
    results = {path: server.answer(asked(path)) for path in ("/livez", "/healthz", "/readyz")}
    assert {path: answer.code for path, answer in results.items() if answer} == {
        "/livez": 500,
        "/healthz": 500,
        "/readyz": 200,
    }


def test_results_are_counted_by_name_type_and_status() -> None:
    server = probes(ping=True, sync=False)
    for path in ("/readyz", "/readyz", "/livez?exclude=sync", "/readyz/ping"):
        server.answer(asked(path))
    lines = server.findings.exposition().decode().splitlines()
    assert 'kubernetes_healthcheck{name="sync",type="readyz"} 0.0' in lines
    assert 'kubernetes_healthcheck{name="ping",type="livez"} 1.0' in lines
    assert 'kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 2.0' in lines
    assert 'kubernetes_healthchecks_total{name="sync",status="error",type="readyz"} 2.0' in lines
    assert not [line for line in lines if 'name="sync",type="livez"' in line]


def test_servers_count_apart() -> None:
    one, other = Probes(passing("ping"), {}, {}), Probes(passing("ping"), {}, {}, Findings())
    one.answer(asked("/healthz"))
    assert b'name="ping"' in one.findings.exposition()
    assert b'name="ping"' not in other.findings.exposition()
