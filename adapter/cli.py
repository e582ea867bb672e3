"""The command `backlog-adapter`."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import structlog
import typer

from adapter import __version__
from adapter.errors import AdapterError, ConfigError
from adapter.options import Duration, HpaFiles, LatePrice, Port, Price, Seeds, WorkerCapacity

if TYPE_CHECKING:
    from adapter.config import Config

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ConfigFile = Annotated[Path, typer.Option("--config", metavar="FILE", help="The YAML configuration.")]

_ONLY_WITH = {  # an option of `backtest` -> the options that need it
    "config": ("from_", "to", "workload"),
    "trace": ("profile", "worker_capacity", "delay", "seeds", "master", "out"),
    "report": ("price", "late_price", "currency"),
}


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"backlog-adapter {__version__}")
        raise typer.Exit


@app.callback()
def backlog_adapter(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Sizes streaming jobs by their backlog, serves the numbers to Kubernetes' HPA, and says why."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; a fault is one sentence a line on stderr, and exit code 2.

    arguments: those of the process by default.
    """
    # A traceback with its variables would show the tokens of requests.
    plain = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    processors = [*structlog.get_config()["processors"][:-1], plain]
    # Each line goes to the stderr of its time, which the live table of `run` replaces.
    structlog.configure(processors=processors, logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
    try:
        app(arguments, prog_name="backlog-adapter")
    except AdapterError as error:
        faults = error.faults if isinstance(error, ConfigError) else (str(error),)
        sys.stderr.write("".join(f"backlog-adapter: {fault}\n" for fault in faults))
        sys.exit(2)


def _log_as_faults() -> None:
    """Print further log messages in the form of faults, for commands that do not keep running."""

    def render(_: object, level: str, event: structlog.typing.EventDict) -> str:
        return f"backlog-adapter: {level}: {event['event']}"

    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], render])


@app.command()
def run(
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Real sources; without it, an embedded simulated fleet.")
    ] = None,
    for_: Duration = None,
    port: Port = 8080,
) -> None:
    """Run everything in the foreground on loopback, with a live table and a page."""
    from adapter import local, wiring

    local.run(None if config is None else wiring.load(config), port, for_)


@app.command()
def pipeline(
    config: ConfigFile,
    master: Annotated[str | None, typer.Option(help="Spark's master; without it, Spark runs in this process.")] = None,
) -> None:
    """Read the sources, decide every tick, and publish the snapshot that `serve` pulls."""
    from adapter import wiring

    wiring.pipeline(wiring.load(config), master)


@app.command()
def serve(
    config: ConfigFile,
    insecure_local: Annotated[
        bool, typer.Option("--insecure-local", help="No authentication; listens on loopback only.")
    ] = False,
) -> None:
    """Answer the metrics API from the newest snapshot of a pipeline."""
    from adapter import config as configuration
    from adapter.serving import roles

    roles.serve(configuration.load_serving(config), insecure_local=insecure_local)


@app.command()
def check(config: ConfigFile, hpa: HpaFiles = None) -> None:
    """Check a configuration, or values of the chart, without connecting: a line for each fault, and exit code 2."""
    from adapter import wiring
    from adapter.operations import manifest_check

    _log_as_faults()
    try:
        values = wiring.load_values(config)
        known = wiring.load(config) if values is None else values.config
    except ConfigError as error:
        skipped = ["--hpa: no HPA was checked; correct the configuration first"] if hpa else []
        raise ConfigError([*error.faults, *skipped]) from None
    kind = "is a valid configuration" if values is None else "has values of the chart with a valid config"
    typer.echo(f"{config} {kind}: {manifest_check.contents(known)}")
    if hpa:
        typer.echo(manifest_check.check(hpa, known, values))


@app.command()
def explain(  # noqa: PLR0913 - each is an option of the command
    workload: Annotated[str, typer.Argument(metavar="NAMESPACE/NAME", help="The workload, such as shop/orders.")],
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Ask the pipeline of this configuration, with its token and CA.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Address of `run` or of a pipeline; default: the address of `run`.")
    ] = None,
    token_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="File with the pipeline's bearer token.")
    ] = None,
    ca_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="PEM file of the CA of the pipeline's certificate.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record itself.")] = False,
) -> None:
    """Say why a workload's number is what it is, what would change it, and what the HPA does with it."""
    from adapter import config as configuration
    from adapter.operations import record_client

    configured = None if config is None else configuration.load(config)
    known = record_client.Address() if configured is None else record_client.address_of(configured)
    given = {"url": url, "token_file": token_file, "ca_file": ca_file}
    body = record_client.fetch(
        workload, replace(known, **{name: value for name, value in given.items() if value is not None})
    )
    typer.echo(json.dumps(json.loads(body), indent=2) if as_json else _explain_text(body, configured, workload))


def _explain_text(body: bytes, configured: "Config | None", workload: str) -> str:
    try:
        from adapter.operations import explain
        from adapter.operations.streams import stream_section
    except ModuleNotFoundError as error:  # the image of `serve` has no numpy
        raise AdapterError(f"{error.name} is not installed here: ask in the pipeline's pod, or add --json") from error
    explained = explain.explain_body(body)
    streams = [] if configured is None else [stream_section(configured, workload)]
    lines = explain.lines(explained, *streams)
    end = lines.index("")
    # Where the output is no terminal, echo takes the styles off again.
    return "\n".join(
        typer.style(line, bold=True) if number < end or line.startswith(">") else line
        for number, line in enumerate(lines)
    )


@app.command()
def check_api(
    api: Annotated[list[str] | None, typer.Option(metavar="external|custom", help="May be given again.")] = None,
    workload: Annotated[str, typer.Option(metavar="NAMESPACE/NAME", help="The workload to query.")] = "default/none",
    kubeconfig: Annotated[
        str | None, typer.Option(metavar="FILE", help="Without it, the service account of the pod.")
    ] = None,
) -> None:
    """Read a metric through the cluster's API, as the HPA controller does: `helm test` runs this."""
    from adapter.operations import api_check

    if unknown := [name for name in api or () if name not in api_check.APIS]:
        raise ConfigError([f"--api: expected external or custom, got {name!r}" for name in unknown])
    for sentence in api_check.check(api or ["external"], workload, kubeconfig):
        typer.echo(sentence)


@app.command()
def backtest(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    trace: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A load, CSV `seconds,rate`; may be given again.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Without --trace: simulate the history in its sources.")
    ] = None,
    policy: Annotated[
        str | None, typer.Option(metavar="A,B", help="Policies and baselines; A:parameter=number changes a parameter.")
    ] = None,
    profile: Annotated[str, typer.Option(metavar="P,Q", help="With --trace: costs of a rescale.")] = "consumer-group",
    worker_capacity: WorkerCapacity = None,
    delay: Annotated[
        str | None, typer.Option(metavar="0,120", help="With --trace: age of metrics in s; default: the profile.")
    ] = None,
    seeds: Seeds = 1,
    master: Annotated[str | None, typer.Option(help="Spark's master; without it, Spark runs in this process.")] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the results; finished runs are skipped.")] = Path(
        "backtest"
    ),
    from_: Annotated[
        str,
        typer.Option("--from", metavar="TIME", help="With --config: a date, 2026-11-14T08:00:00Z, or -7d."),
    ] = "-7d",
    to: Annotated[str, typer.Option(metavar="TIME", help="With --config: as --from, or now.")] = "now",
    workload: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMESPACE/NAME", help="With --config: simulate it alone; may be given again."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="HTML file with charts, and tables as CSV beside it.")
    ] = None,
    price: Price = None,
    late_price: LatePrice = None,
    currency: Annotated[str, typer.Option(help="Currency of the prices.")] = "EUR",
) -> None:
    """Simulate policies on recorded loads or on your own history, and compare their cost, lateness and rescales."""
    from adapter import wiring
    from adapter.backtest import command, history_report
    from adapter.backtest.prices import Prices
    from adapter.backtest.report import probe
    from adapter.stop_signals import SPARK_STOPS, stop_event

    if (trace is None) == (config is None):
        given = "neither" if trace is None else "both"
        raise ConfigError([f"backtest: expected either --trace FILE or --config FILE, got {given}"])
    if faults := list(_out_of_place(context)):
        raise ConfigError(faults)
    options = history_report.ReportOptions(
        start=from_,
        end=to,
        workloads=tuple(workload or ()),
        prices=Prices(worker_hour=price, late_minute=late_price),
        currency=currency,
        report=report or Path("backtest.html"),
    )
    say = partial(typer.echo, err=True)
    if config is not None:
        _log_as_faults()
        options = replace(options, policies=() if policy is None else command.parse_policies(policy))
        files = history_report.run(wiring.load_for_history(config), options, say)
    else:
        wanted = command.GridOptions(
            policies=command.DEFAULT_POLICY if policy is None else policy,
            profiles=profile,
            delays=delay,
            seeds=seeds,
            worker_capacity_records_per_s=worker_capacity,
            records_first_seed=report is not None,
        )
        traces, grid = command.read_request(trace or [], wanted)
        if report is not None:
            probe(report)
        with stop_event(SPARK_STOPS) as stop:
            units = command.trace_backtest(traces, grid, out)
            for sentence in (*command.assumptions(traces, grid), command.describe_runs(units, grid)):
                typer.echo(sentence)
            command.run(units, partial(wiring.spark, master, out), stop)
        files = () if report is None else history_report.write_trace_report(units, grid, options)
    for file in files:
        typer.echo(f"written: {file}")


def _out_of_place(context: typer.Context) -> Iterator[str]:
    """Name the given options that have no effect without another option, in a sentence for each missing one."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    for needed, names in _ONLY_WITH.items():
        unused = [f"--{name.rstrip('_').replace('_', '-')}" for name in names if name in given]
        always = needed == "report" and "config" in given  # a history always becomes a page
        if unused and not always and needed not in given:
            yield f"{', '.join(unused)}: only with --{needed}"


@app.command()
def schema() -> None:
    """Print the configuration's JSON schema."""
    from adapter import config as configuration

    typer.echo(json.dumps(configuration.json_schema(), indent=2))
