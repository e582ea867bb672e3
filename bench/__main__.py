"""The command: run the named benchmarks, or all, and print each result with its aim."""

import argparse
from collections.abc import Callable, Iterator

import typer

from bench import advance, api, attack, connections, first_decision, kafka_groups, one_cpu, tick
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
    "one_cpu": one_cpu.figures,
}


def main() -> None:
    """Print the machine, then one line per result as soon as it is measured."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *BENCHES], metavar="NAME", help=" ".join(BENCHES))
    typer.echo(description())
    for name in parser.parse_args().names or BENCHES:
        typer.echo(f"\n{name}  (load average {load()})")
        for figure in BENCHES[name]():
            typer.echo(f"  {figure}")


if __name__ == "__main__":
    main()
