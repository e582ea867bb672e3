"""A standalone Spark cluster: a master, and workers on loopback or in pods."""

import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from parts.process import Process, free_port, until

LOOPBACK = "127.0.0.1"
SPARK = Path(pyspark.__file__).parent
STARTS_WITHIN_S = 180.0


def environment(host: str) -> dict[str, str]:
    """By default the daemons and drivers advertise the address of the host, which is not reachable here."""
    return {"SPARK_LOCAL_IP": host, "SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": sys.executable}


ENV = environment(LOOPBACK)


def daemon_command(kind: str, host: str, *arguments: str) -> list[str]:
    """The command of a `master` or a `worker`."""
    main = f"org.apache.spark.deploy.{kind}.{kind.capitalize()}"
    return [str(SPARK / "bin" / "spark-class"), main, "--host", host, "--webui-port", "0", *arguments]


class Master(Process):
    """Leads a cluster of workers at `url`."""

    def __init__(self, folder: Path, host: str, **more: str) -> None:
        port = free_port()
        self.url = f"spark://{host}:{port}"
        super().__init__(
            "master", daemon_command("master", host, "--port", str(port)), folder, environment(host) | more
        )

    def start(self) -> None:
        """Returns when the master leads."""
        super().start()
        self.ready(lambda: "I have been elected leader" in self.log.read_text())


def worker_command(host: str, folder: str, master: str, memory: str = "640m") -> list[str]:
    """A worker of one core."""
    return daemon_command("worker", host, "--cores", "1", "--memory", memory, "--work-dir", folder, master)


@contextmanager
def standalone_cluster(folder: Path, **more: str) -> Iterator[str]:
    """Yields the address of a master with two workers of one core each."""
    with ExitStack() as started:
        master = started.enter_context(Master(folder, LOOPBACK, **more))
        for name in ("worker-1", "worker-2"):
            command = worker_command(LOOPBACK, str(folder / name), master.url, "2g")
            started.enter_context(Process(name, command, folder, ENV | more))
        registered = re.compile("Registering worker")
        until(
            lambda: len(registered.findall(master.log.read_text())) == 2, STARTS_WITHIN_S, "two workers are registered"
        )
        yield master.url
