"""The live table and the summary."""

import pytest
from rich.console import Console
from ui_decisions import AT_S, decision, snapshot

from adapter.core.decisions import Reason
from adapter.serving.snapshots.snapshot import Snapshot
from adapter.serving.ui.terminal import summary, table


def shown(held: Snapshot | None, width: int = 160, height: int = 100) -> str:
    console = Console(width=width, height=height, force_terminal=False)
    with console.capture() as captured:
        console.print(table(console, held, AT_S + 3))
    return captured.get()


def fleet(size: int) -> Snapshot:
    return snapshot(*(decision(f"demo/job-{number:04d}") for number in range(size)))


def test_the_table_has_the_columns_of_the_page_and_the_reason_in_a_sentence() -> None:
    text = shown(snapshot(decision(backlog_records=1234.0, backlog_time_s=3.3, spec_workers=6.0)))

    for word in ("input", "throughput", "backlog", "time", "target", "required", "current"):
        assert word in text
    for word in ("demo/steady", "370", "1 234", "3.3 s", "60 s", "4 of 6", "Hold: Holding 4 workers"):
        assert word in text
    assert "decided 3 s ago" in text


def test_an_unknown_number_is_unknown_in_the_table() -> None:
    text = shown(snapshot(decision(reason=Reason.NO_DATA, required_workers=None, backlog_time_s=None)))

    assert text.count("unknown") == 2


def test_before_the_first_decision_the_table_names_the_cause() -> None:
    assert "waiting for the first decision" in shown(None)


def test_a_name_is_never_read_as_markup() -> None:
    assert "demo/[red]x[/red]" in shown(snapshot(decision("demo/[red]x[/red]")))


@pytest.mark.parametrize("width", [20, 50, 80, 100, 160])
@pytest.mark.parametrize("size", [0, 1, 9, 1000])
def test_the_table_never_exceeds_the_terminal(width: int, size: int) -> None:
    lines = shown(fleet(size), width, height=24).splitlines()

    assert len(lines) <= 24
    assert max(map(len, lines)) <= width


def test_workloads_that_do_not_fit_are_counted() -> None:
    text = shown(fleet(1000), height=15)

    assert text.count("demo/job-") == 5
    assert text.endswith("995 more workloads are on the page\n")


def test_nine_workloads_fit_into_the_smallest_usual_terminal() -> None:
    text = shown(fleet(9), width=80, height=24)

    assert text.count("demo/job-") == text.count("Hold: Holding 4 workers") == 9


def test_a_short_terminal_shortens_the_sentences_of_the_least_urgent_workloads() -> None:
    held = snapshot(decision("demo/calm"), decision("demo/late", backlog_time_s=200.0, spec_workers=None))

    late, calm = shown(held, width=40, height=9).split("demo/")[1:]
    assert "throughput 370/s" in late
    assert "…" in calm


def test_in_a_narrow_terminal_names_are_cut_and_numbers_are_not() -> None:
    text = shown(snapshot(decision("demo/a-very-long-name-of-a-workload", backlog_records=1234567.0)), width=80)

    assert "demo/a-very-long-na…   370        370  1 234 567     0 s   60 s        4       4" in text


def test_the_summary_has_each_workload_with_its_sizes_and_last_reason() -> None:
    text = summary(
        snapshot(decision("demo/sine", required_workers=6.0), decision()),
        {"demo/sine": (4, 8, 6), "demo/steady": (4,)},
        120.3,
    )

    first, sine, steady = text.splitlines()
    assert first == "2 min, 2 workloads, 2 rescales"
    assert sine.startswith("  demo/sine    workers 4 → 8 → 6  Holding 6 workers")
    assert steady.startswith("  demo/steady  workers 4  Holding 4 workers")


@pytest.mark.parametrize(
    ("ran_s", "text"),
    [
        (0.2, "0 s"),
        (90.0, "1 min 30 s"),
        (150.0, "2 min 30 s"),
        (599.7, "10 min"),
        (3660.0, "1 h 1 min"),
        (7205.0, "2 h 5 s"),
    ],
)
def test_the_summary_begins_with_the_duration_to_the_second(ran_s: float, text: str) -> None:
    assert summary(None, {}, ran_s).startswith(f"{text}, ")


def test_a_long_list_of_sizes_is_shortened_in_its_middle() -> None:
    text = summary(snapshot(decision()), {"demo/steady": tuple(range(1, 31))}, 600.0)

    assert "workers 1 → 2 → 3 → 4 → (22 more) → 27 → 28 → 29 → 30  Holding" in text


def test_without_a_fleet_the_summary_has_the_reasons_alone() -> None:
    text = summary(snapshot(decision()), {}, 30.0)

    assert text.splitlines()[1].startswith("  demo/steady  Holding 4 workers")


def test_the_summary_of_a_run_without_decisions_says_so() -> None:
    assert summary(None, {}, 5.0).splitlines() == [
        "5 s, 0 workloads, 0 rescales",
        "  nothing was decided yet: on a busy machine Spark starts in up to two minutes; run it for longer",
    ]
