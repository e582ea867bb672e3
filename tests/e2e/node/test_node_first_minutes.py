"""Every command of docs/first-ten-minutes.md works on a real node, in its order."""

import shlex
from pathlib import Path

from parts.adapter import Adapter
from parts.container_workload import ContainerWorkload
from parts.controlplane import ControlPlane
from parts.process import until

PAGE = Path(__file__).parents[3] / "docs" / "first-ten-minutes.md"
# The fixtures have done these.
BEFORE = ("helm install", "kubectl apply")


def commands() -> list[str]:
    """The lines of the page that begin with a prompt, after the installation."""
    lines = [line.removeprefix("$ ") for line in PAGE.read_text().splitlines() if line.startswith("$ ")]
    return [line for line in lines if not line.startswith(BEFORE)]


def test_each_command_of_the_first_ten_minutes_succeeds(
    adapter: Adapter, job: ContainerWorkload, controlplane: ControlPlane, run: Path
) -> None:
    """The page's outputs come from the transcript of this test."""
    until(lambda: adapter.number("required_workers", job.name), 300, "required_workers has a number")
    programs = {"kubectl": controlplane.kubectl, "helm": controlplane.helm}
    printed = {}
    for command in commands():
        program, *arguments = shlex.split(command)
        printed[command] = programs[program](*arguments)
    (run / "first-ten-minutes.txt").write_text("".join(f"$ {name}\n{text}\n" for name, text in printed.items()))
    assert len(printed) >= 8
    assert [command for command, text in printed.items() if not text.strip()] == []
