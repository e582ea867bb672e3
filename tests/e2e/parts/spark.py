"""A standalone Spark cluster of one master and two workers on loopback."""

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
# By default the daemons and drivers advertise the address of the host, which is not reachable here.
ENV = {"SPARK_LOCAL_IP": LOOPBACK, "SPARK_HOME": str(SPARK), "PYSPARK_PYTHON": sys.executable}


def _daemon(folder: Path, name: str, environment: dict[str, str], *arguments: str) -> Process:
    """A master or a worker of Spark's standalone cluster."""
    kind = f"org.apache.spark.deploy.{name.partition('-')[0]}.{name.partition('-')[0].capitalize()}"
    command = [SPARK / "bin" / "spark-class", kind, "--host", LOOPBACK, *arguments]
    return Process(name, command, folder, ENV | environment | {"SPARK_WORKER_DIR": str(folder / name)})


@contextmanager
def standalone_cluster(folder: Path, **environment: str) -> Iterator[str]:
    """Yields the address of a master with two workers of one core each."""
    port = free_port()
    address = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as started:
        head = started.enter_context(_daemon(folder, "master", environment, "--port", str(port), "--webui-port", "0"))
        until(lambda: "I have been elected leader" in head.log.read_text(), STARTS_WITHIN_S, "the master leads")
        for name in ("worker-1", "worker-2"):
            arguments = ("--cores", "1", "--memory", "2g", "--webui-port", "0", address)
            started.enter_context(_daemon(folder, name, environment, *arguments))
        registered = re.compile("Registering worker")
        until(lambda: len(registered.findall(head.log.read_text())) == 2, STARTS_WITHIN_S, "two workers are registered")
        yield address
