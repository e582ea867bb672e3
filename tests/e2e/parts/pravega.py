"""Pravega standalone, in one Java process."""

import time
from pathlib import Path
from typing import Any

import httpx

from bench.tool_folder import tools
from parts.process import HOST, Process, free_port, until

_SETTINGS = """\
singlenode.controller.rest.enable=true
singlenode.controller.rest.port={rest}
singlenode.controller.rpc.port={rpc}
singlenode.segmentStore.port={store}
singlenode.zk.port={zookeeper}
singlenode.admin.gateway.enable=false
singlenode.metrics.enable=true
singlenode.metrics.prometheus.enable=true
singlenode.metrics.reporting.interval=5
"""
_LOGGING = """\
<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %level %logger %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="console"/></root>
</configuration>
"""


LIBRARIES = tools() / "pravega-0.13.0" / "libs" / "*"


class Pravega(Process):
    """Creates and scales streams through the controller's REST API at `url`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        rest, rpc = free_port(), free_port()
        self.url = f"http://{HOST}:{rest}"
        self.controller = f"tcp://{HOST}:{rpc}"  # for clients
        settings = folder / "standalone.properties"
        settings.write_text(_SETTINGS.format(rest=rest, rpc=rpc, store=free_port(), zookeeper=free_port()))
        logging = folder / "logback.xml"
        logging.write_text(_LOGGING)
        java = [
            "java", "-Xms128m", "-Xmx320m", "-XX:MaxDirectMemorySize=320m", "-Dpravegaservice.cache.size.max=134217728",
            "-Dpravegaservice.container.count=1", f"-Dsinglenode.configurationFile={settings}",
            f"-Dpravegaservice.service.published.host.nameOrIp={HOST}",
            # Ten minutes by default. The rates of 2, 5, 10 and 20 minutes remain.
            "-DautoScale.cooldown.time.seconds=60", "-DautoScale.mute.time.seconds=30",
            f"-Dlogback.configurationFile={logging}", "-cp", LIBRARIES,
        ]  # fmt: skip
        super().__init__("pravega", [*java, "io.pravega.local.LocalPravegaEmulator"], folder)

    def start(self) -> None:
        """Returns when the controller lists its scopes."""
        super().start()
        self.ready(lambda: "_system" in httpx.get(f"{self.url}/v1/scopes", timeout=2).text)

    def create_stream(self, scope: str, stream: str, segments: int, events_per_s: int | None = None) -> None:
        """Creates the scope and the stream unless they exist. events_per_s of a segment: else their number is fixed."""
        policy = _fixed(segments)
        if events_per_s is not None:
            policy |= {"type": "BY_RATE_IN_EVENTS_PER_SEC", "targetRate": events_per_s, "scaleFactor": 2}
        self._create("/v1/scopes", {"scopeName": scope})
        self._create(f"/v1/scopes/{scope}/streams", {"streamName": stream, "scalingPolicy": policy})

    def _create(self, path: str, what: dict[str, object]) -> None:
        """Retries: a controller that lists its scopes may not be able to create one yet."""

        def exists() -> bool:
            return httpx.post(f"{self.url}{path}", json=what, timeout=60).status_code in (201, 409)

        until(exists, 120, f"{what} is in {path}", every_s=1.0)

    def scale(self, scope: str, stream: str, segments: int) -> None:
        """Scales the stream: Pravega seals, splits or merges segments."""
        body = {"scalingPolicy": _fixed(segments)}
        answer = httpx.put(f"{self.url}/v1/scopes/{scope}/streams/{stream}", json=body, timeout=60)
        assert answer.status_code == 200, answer.text

    def segments(self, scope: str, stream: str) -> int:
        """The active segments after the last scaling event that Pravega lists."""
        now_ms = int(time.time() * 1000)
        window = {"from": now_ms - 60_000, "to": now_ms + 1000}
        address = f"{self.url}/v1/scopes/{scope}/streams/{stream}/scaling-events"
        events: list[dict[str, Any]] = httpx.get(address, params=window, timeout=10).json()
        return len(events[-1]["segments"])


def _fixed(segments: int) -> dict[str, object]:
    return {"type": "FIXED_NUM_SEGMENTS", "minSegments": segments}
