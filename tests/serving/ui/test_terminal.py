"""The live table and the summary."""

from decided import AT_S, decision, snapshot
from rich.console import Console

from adapter.core.decisions import Reason
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.serving.ui.terminal import summary, table


def shown(held: Snapshot | None, rows: int = 40, width: int = 160) -> str:
    console = Console(width=width, record=True, quiet=False, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(table(held, AT_S + 3, rows))
    return captured.get()


def test_the_table_has_the_columns_of_the_page_and_the_reason_in_a_sentence() -> None:
    text = shown(snapshot(decision(backlog_records=1234.0, backlog_time_s=3.3, spec_workers=6.0)))

    for word in ("arrival", "throughput", "backlog", "time", "target", "required", "current", "why"):
        assert word in text
    for word in ("demo/steady", "370", "1 234", "3.3 s", "60 s", "4 of 6", "Hold", "Holding 4 workers"):
        assert word in text
    assert "decided 3 s ago" in text


def test_an_unknown_number_is_unknown_in_the_table() -> None:
    text = shown(snapshot(decision(reason=Reason.NO_DATA, required_workers=None, backlog_time_s=None)))

    assert text.count("unknown") == 2


def test_before_the_first_decision_the_table_names_the_cause() -> None:
    assert "waiting for the first decision" in shown(None)


def test_a_name_is_never_read_as_markup() -> None:
    assert "demo/[red]x[/red]" in shown(snapshot(decision("demo/[red]x[/red]")))


def test_rows_that_do_not_fit_are_counted() -> None:
    held = snapshot(*(decision(f"demo/job-{number:04d}") for number in range(1000)))

    text = shown(held, rows=5)

    assert "995 more workloads" in text
    assert text.count("demo/job-") == 5


def test_a_narrow_terminal_still_shows_the_numbers() -> None:
    assert "370" in shown(snapshot(decision()), width=100)


def test_the_summary_has_each_workload_with_its_sizes_and_last_reason() -> None:
    text = summary(
        snapshot(decision("demo/sine", required_workers=6.0), decision()),
        {"demo/sine": (4, 8, 6), "demo/steady": (4,)},
        120.0,
    )

    first, sine, steady = text.splitlines()
    assert first == "2 min, 2 workloads, 2 rescales"
    assert sine.startswith("  demo/sine    workers 4 → 8 → 6  Holding 6 workers")
    assert steady.startswith("  demo/steady  workers 4  Holding 4 workers")


def test_a_long_list_of_sizes_is_shortened_in_its_middle() -> None:
    text = summary(snapshot(decision()), {"demo/steady": tuple(range(1, 31))}, 600.0)

    assert "workers 1 → 2 → 3 → 4 → 22 more → 27 → 28 → 29 → 30  Holding" in text


def test_without_a_fleet_the_summary_has_the_reasons_alone() -> None:
    text = summary(snapshot(decision()), {}, 30.0)

    assert text.splitlines()[1].startswith("  demo/steady  Holding 4 workers")


def test_the_summary_of_a_run_without_decisions_gives_the_cause() -> None:
    assert "nothing was decided" in summary(None, {}, 5.0)
