"""The curve of `drain` over the value of a rescale: no other policy without late records is better in both."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from adapter.backtest.trace import normalisation_ratio, read, resample
from adapter.simulator import closed_loop
from adapter.simulator.baselines.registry import BASELINES
from adapter.simulator.profiles import PROFILES, STEP_S
from adapter.simulator.score import scores
from adapter.simulator.world import SimulatedJob
from bench import frontier_picture
from bench.frontier import CURVE, dominating_point, main, table
from bench.frontier_picture import FrontierPoint
from bench.played_plan import LATE_PCT

TRACES = Path(__file__).parents[1] / "data" / "traces"
HOURS = 7
SLACK_RATIO = 0.05
PUBLISHED = ("dataflow", "beam-flink", "varga", "netflix")
# A fixed size without any rescale, and a target of two minutes of backlog; `ds2` has no margin. All others are beaten.
EXCEPTIONS = {"static-peak": "not beaten", "keda-120s": "not beaten", "ds2": "late"}


def point(policy: str, cost: float, rescales: float, late: int = 0) -> FrontierPoint:
    return FrontierPoint(policy=policy, cost_ratio=cost, rescales_per_day=rescales, over_60s_pct=0.0, late_traces=late)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(point("a", 1.2, 60), CURVE[0], id="dearer at as many rescales"),
        pytest.param(point("a", 1.3, 25), CURVE[1], id="the value with the fewest rescales"),
        pytest.param(point("a", 1.1, 60), None, id="cheaper than every value"),
        pytest.param(point("a", 1.2, 25), None, id="between two values"),
        pytest.param(point("a", 1.5, 5), None, id="a late value beats nothing"),
    ],
)
def test_a_policy_is_beaten_by_a_value_with_no_more_of_both(other: FrontierPoint, expected: str | None) -> None:
    curve = [point(CURVE[0], 1.15, 50), point(CURVE[1], 1.25, 20), point(CURVE[2], 1.3, 5, late=1)]
    found = dominating_point(other, curve)

    assert (found.policy if found else None) == expected


def test_slack_lets_a_little_more_count_as_no_more() -> None:
    curve = [point(CURVE[0], 1.15, 50)]

    assert dominating_point(point("a", 1.14, 49), curve) is None
    assert dominating_point(point("a", 1.14, 49), curve, slack_ratio=0.05) == curve[0]


def test_the_table_says_at_which_value_a_policy_is_beaten() -> None:
    found = [
        point(CURVE[0], 1.15, 50),
        point("ds2", 1.2, 300),
        point("varga", 1.1, 9),
        point("keda-10", 1.0, 9, late=2),
    ]
    lines = table("consumer-group", found).splitlines()

    assert lines[3] == "| `ds2` | 1.20 | 300 | 0.00 | 0 | rescale_worth_s=1 |"
    assert lines[4].endswith("| no value |")
    assert lines[5].endswith("| 2 | late |")


def test_the_usage_is_that_of_the_frontier(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    usage = capsys.readouterr().out

    assert usage.startswith("usage: python -m bench.frontier ")
    assert "Play `drain` at several values of a rescale" in usage


def test_the_picture_has_a_plot_for_each_profile_and_a_point_for_each_policy() -> None:
    found = [point(CURVE[0], 1.15, 50), point(CURVE[1], 1.2, 30), point("ds2", 1.2, 300), point("keda-10", 3.0, 9)]
    drawn = frontier_picture.draw({"one": found, "two": found}, CURVE)
    words = ["".join(text.itertext()) for text in ElementTree.fromstring(drawn).iter()]  # noqa: S314  # our own text

    assert {"one", "two", "ds2"} <= set(words)
    assert drawn.count("<circle") == 2 * 3
    assert "keda-10" not in words  # beyond the plot


def played() -> list[FrontierPoint]:
    """Every policy on a day of ads, seven hours long, as a consumer group."""
    profile, recorded = PROFILES["consumer-group"], read(TRACES / "dsp_ads_18h_1s.csv")
    rate = (resample(recorded) * normalisation_ratio(recorded, profile))[: round(HOURS * 3600 / STEP_S)]
    names = (*CURVE, *PUBLISHED, *BASELINES)
    found = scores(closed_loop.run([SimulatedJob(rate, 0, name, profile, 1) for name in names]).tally)
    late = (found["late_pct"] > LATE_PCT).astype(int).tolist()
    rows = zip(names, found["worker_hours"].tolist(), found["rescales_per_day"].tolist(), late, strict=True)
    return [point(*row) for row in rows]


def outcome(other: FrontierPoint, curve: list[FrontierPoint]) -> str:
    """Whether a value of `drain` beats a policy."""
    if other.late_traces:
        return "late"
    return "not beaten" if dominating_point(other, curve, SLACK_RATIO) is None else "beaten"


@pytest.mark.simulation
@pytest.mark.timeout(600)  # two minutes on a busy machine
def test_every_policy_but_the_exceptions_is_beaten_by_a_value() -> None:
    points = played()
    curve = [one for one in points if one.policy in CURVE]
    found = {one.policy: outcome(one, curve) for one in points if one.policy not in CURVE}

    assert found == dict.fromkeys([*PUBLISHED, *BASELINES], "beaten") | EXCEPTIONS
