"""Compare `serve` with two servers in Go and an empty Flask view: same machine, same run, same client, in turn.

Every request comes over TLS with the front proxy's certificate and the identity of the HPA controller. All servers
but the view authorize it against the same stand-in cluster. `serve` answers from snapshots that it keeps pulling. The
first comparison is with the view, and with prometheus-adapter in front of a real Prometheus, which scrapes the same
numbers from the pipeline's `/metrics`. The second is with a server on custom-metrics-apiserver whose provider is a
table. A line shows the median of the repetitions with minimum and maximum.
"""

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import typer

from adapter.errors import SetupError
from bench import empty_view, go_server, prometheus_adapter, replica
from bench.comparison import SITUATIONS, WITHOUT_STALLS, Comparison, Contender
from bench.comparison_line import heading
from bench.machine import description, load
from bench.processes import LOOK_EVERY_S
from bench.replica import STARTS_WITHIN_S, WORKLOADS, Replica, answers

LARGE = 40_000  # workloads


def main(words: Sequence[str] | None = None) -> None:
    """Print the machine, then each line as soon as it is measured. words: the command line; default: of the process.

    Exits with 2 if the load generator is missing.
    """
    arguments, programs = _parse_arguments(words), go_server.folder()
    if not (programs / "load").is_file():
        sys.stderr.write(f"bench-api: {_missing(programs / 'load')}\n")
        sys.exit(2)
    try:
        machine = description()
    except SetupError as error:
        sys.exit(f"bench-api: {error}")
    # SIGTERM ends the benchmark as Ctrl-C does, so that it stops all its processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    began_s = time.monotonic()
    typer.echo(f"{machine}\nGo: custom-metrics-apiserver {go_server.version()}\n")
    with replica.replica() as ours, ExitStack() as started:
        for line in _measure(ours, programs, arguments, started):
            typer.echo(line)
    typer.echo(f"\nthis run took {time.monotonic() - began_s:.0f} s; load average {load()}")


def _measure(ours: Replica, programs: Path, arguments: argparse.Namespace, started: ExitStack) -> Iterator[object]:
    generator = go_server.load_generator(ours.identities)
    contender = Contender("ours", ours.pid, ours.port, replica.path("%d"))
    comparison = Comparison(generator, [contender], arguments.repetitions, arguments.seconds)
    parts = prometheus_adapter.programs()
    if parts is None:
        yield f"prometheus-adapter or Prometheus is missing: `{prometheus_adapter.BUILD}` builds both\n"
    else:
        yield from _compare_prometheus_adapter(comparison, parts, ours)
    if arguments.only == "prometheus-adapter":
        return
    if (programs / "server").is_file():
        comparison.contenders = [contender, started.enter_context(go_server.go_server(programs / "server", ours))]
    else:
        yield f"ours alone: {_missing(programs / 'server')}\n"
    yield from _lines(comparison, ours)


def _compare_prometheus_adapter(comparison: Comparison, parts: tuple[Path, Path], ours: Replica) -> Iterator[object]:
    with prometheus_adapter.prometheus_adapter(parts, ours) as other, empty_view.empty_view(ours.identities) as least:
        both = replace(comparison, contenders=[*comparison.contenders, other, least])
        yield heading([each.name for each in both.contenders])
        yield from both.closed_loops(WITHOUT_STALLS, ">= 3 times")
        yield both.memory("memory (RSS); Prometheus apart")
        yield f"{both.failures()}\n"


def _lines(comparison: Comparison, ours: Replica) -> Iterator[object]:
    yield heading([each.name for each in comparison.contenders])
    yield comparison.memory(f"memory (RSS), {WORKLOADS} workloads, idle")
    yield from comparison.closed_loops(SITUATIONS, ">= 0.8 times")
    yield from comparison.aggregator_requests()
    yield from comparison.syncs()
    yield from comparison.spread_sync()
    yield comparison.memory("memory (RSS) after the load")
    ours.fleet.resize(LARGE)
    _await_large_fleet(ours)
    yield from comparison.discovery(f"discovery; ours with {LARGE} workloads")
    yield comparison.memory(f"memory (RSS), ours with {LARGE} workloads")
    yield comparison.failures()


def _await_large_fleet(ours: Replica) -> None:
    trust, until_s = ours.identities.context("proxy"), time.monotonic() + STARTS_WITHIN_S
    while not answers(ours.port, trust, replica.path(LARGE - 1)):
        if time.monotonic() > until_s:
            raise RuntimeError(f"{LARGE} workloads were not served within {STARTS_WITHIN_S:.0f} s")
        time.sleep(LOOK_EVERY_S)


def _missing(program: Path) -> str:
    return (
        f"{program} is missing: `make tools` builds it, or, where Go alone is here, {go_server.BUILD} {program.parent}"
    )


def _parse_arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.metrics_api", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each closed loop")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--only", choices=["prometheus-adapter"], help="compare with this server alone")
    return parser.parse_args(words)


if __name__ == "__main__":
    main()
