"""The command: run the named benchmarks, or all, and print each result with its aim."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence

import typer

from adapter.errors import AdapterError
from bench import advance, api, attack, connections, first_decision, kafka_groups, one_cpu, prometheus_fleet, tick
from bench.figures import Figure
from bench.machine import description, load

BENCHES: dict[str, Callable[[], Iterator[Figure]]] = {
    "advance": advance.figures,
    "tick": tick.figures,
    "first_decision": first_decision.figures,
    "api": api.figures,
    "connections": connections.figures,
    "attack": attack.figures,
    "kafka_groups": kafka_groups.figures,
    "prometheus_fleet": prometheus_fleet.figures,
    "one_cpu": one_cpu.figures,
}


def main(words: Sequence[str] | None = None) -> None:
    """Print the machine, then one line per result as soon as it is measured. words: the command line.

    A benchmark that cannot run ends the process with its message and exit code 1.
    """
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHES], metavar="NAME", help=" ".join(BENCHES))
    names = parser.parse_args(words).names or BENCHES
    try:
        typer.echo(description())
        for name in names:
            typer.echo(f"\n{name}  (load average {load()})")
            for figure in BENCHES[name]():
                typer.echo(f"  {figure}")
    except (AdapterError, RuntimeError) as error:
        sys.exit(f"bench: {error}")


if __name__ == "__main__":
    main()
