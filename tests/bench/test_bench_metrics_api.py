"""The benchmark of the metrics API: its table, its load generator, and the message if that is missing."""

import os
import re
from pathlib import Path

import pytest

from bench import go_server, metrics_api, prometheus_adapter
from bench.comparison import SITUATIONS, Comparison, Contender
from bench.comparison_line import Line, heading
from bench.load import Generator, Load

RESULT = '{"requests": 9, "errors": {}, "requests_per_s": 90, "p50_ms": 1, "p99_ms": 2}'
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        pytest.param(((3.0, 1.0, 2.0), (4.0, 5.0, 3.0)), ["2 (1-3)", "4 (3-5)", "0.50"], id="the middles and spreads"),
        pytest.param(((2540.4,), (1270.2,)), ["2540", "1270", "2.00"], id="one repetition has no spread"),
        pytest.param(((0.1234,),), ["0.123"], id="one server has no ratio"),
        pytest.param(((0.0,), (0.0,)), ["0", "0"], id="nothing to nothing is no ratio"),
    ],
)
def test_a_line_has_each_server_and_the_ratio_of_the_first_to_the_second(
    values: tuple[tuple[float, ...], ...], shown: list[str]
) -> None:
    line = str(Line("what", "ms", values))
    assert "  ".join(shown).split() == line.removeprefix("what").split()[1:]


def test_columns_stand_below_their_names() -> None:
    line = str(Line("memory", "MiB", ((80.0,), (70.0,)), "<= 100"))
    above = heading(["ours", "Go"])
    assert [above.index(word) + len(word) for word in ("ours ", "Go ")] == [
        line.index(word) + len(word) for word in ("80 ", "70 ")
    ]


def test_only_several_requests_on_one_connection_go_over_http2() -> None:
    assert "-h2" not in list(Load(25, 1.0).words())
    assert " ".join(Load(1, 1.0, streams=25).words()).endswith("-h2 -streams 25")


def test_headers_are_sent_in_order() -> None:
    headers = (("X-Remote-Group", "a"), ("X-Remote-Group", "b"))
    words = list(Load(1, 1.0, headers=headers).words())
    assert words[-4:] == ["-header", "X-Remote-Group: a", "-header", "X-Remote-Group: b"]


def test_a_failed_load_generator_ends_the_bench_with_its_message(tmp_path: Path) -> None:
    program = tmp_path / "load"
    program.write_text("#!/bin/sh\necho 'load: no route' >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match="load: no route"):
        Generator(program, tmp_path, tmp_path).run(Load(1, 0.1), "https://127.0.0.1:1/")


@pytest.mark.parametrize(
    ("names", "expected"), [(["ours"], []), (["ours", "Go"], [("25 connections", "< Go")])], ids=["alone", "beside Go"]
)
def test_the_usual_situation_alone_has_the_other_server_as_its_latency_aim(
    names: list[str], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    program = tmp_path / "load"
    program.write_text(f"#!/bin/sh\necho '{RESULT}'\n")
    program.chmod(0o755)
    contenders = [Contender(name, os.getpid(), 1, "/%d") for name in names]
    comparison = Comparison(Generator(program, tmp_path, tmp_path), contenders, repetitions=1, seconds=0.1)
    situation, aims = "", []
    for line in comparison.closed_loops(SITUATIONS, "more"):
        situation = line.what or situation
        aims += [(situation, line.aim)] if line.unit == "p99 ms" and line.aim else []

    assert aims == expected


def test_a_missing_load_generator_is_reported_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BACKLOG_ADAPTER_TOOLS", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        metrics_api.main([])
    assert ended.value.code == 2
    missing, result = tmp_path / "goserver" / "load", capsys.readouterr()
    assert f"{missing} is missing: `make tools` builds it" in result.err
    assert result.out == ""


def test_make_tools_builds_the_load_generator() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    target = re.search(r"^tools:.*\n\t(\S+)$", makefile, re.MULTILINE)
    assert target
    assert '"$goserver/build.sh"' in (ROOT / target[1]).read_text("utf-8")
    assert (ROOT / go_server.BUILD).is_file()


def test_the_version_of_the_library_is_that_of_the_go_module() -> None:
    lines = (ROOT / "bench" / "goserver" / "go.mod").read_text("utf-8").splitlines()
    required = dict(line.split()[:2] for line in lines if line.startswith("\t"))
    assert go_server.version() == required["sigs.k8s.io/custom-metrics-apiserver"]


def test_a_missing_prometheus_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKLOG_ADAPTER_TOOLS", str(tmp_path))
    assert prometheus_adapter.programs() is None
    built = tmp_path / "prometheus-1.2.3" / "prometheus", tmp_path / "prometheus-adapter-0.1.0" / "adapter"
    for program in built:
        program.parent.mkdir()
        program.touch()
    assert prometheus_adapter.programs() == built
