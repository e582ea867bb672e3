"""Readers of a Pravega stream that scales itself, and the writer of a wave."""

import math
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parts.controlplane import ControlPlane
from parts.load import RateProcess
from parts.pravega import LIBRARIES, Pravega
from parts.process import until
from parts.scale_target import ScaleTarget

SCOPE = "shop"
_PROGRAM = Path(__file__).parents[1] / "tools" / "pravega" / "WaveStream.java"


@dataclass(frozen=True, slots=True)
class Wave:
    """A sine from 1 to highest_events_per_s and back, and a calm after it.

    Never 0: Pravega measures the rate of a segment at its writes.
    """

    highest_events_per_s: float
    period_s: float

    def rate(self, at_s: float) -> float:
        """Events/s at this time since the start of the wave."""
        return max(1.0, self.highest_events_per_s * (1 - math.cos(2 * math.pi * min(at_s / self.period_s, 1.0))) / 2)


@dataclass(frozen=True, slots=True)
class StreamObservation:
    """The state of a stream and its readers, read without the adapter."""

    at_s: float  # since the start of the wave
    events_per_s: float  # that are written
    segments: int
    replicas: int  # spec.replicas of the readers' Deployment
    readers: int  # online in the reader group

    def __str__(self) -> str:
        rate = f"{self.at_s:6.0f} s {self.events_per_s:5.0f} events/s"
        return f"{rate} {self.segments:3} segments {self.replicas:3} replicas {self.readers:3} readers"


@dataclass
class StreamReaders(ScaleTarget):
    """A stream, its writer, a reader group, and the HPA that scales the readers."""

    name: str  # of the stream, the Deployment and the HPA
    pravega: Pravega
    plane: ControlPlane
    folder: Path
    wave: Wave
    segment_events_per_s: int  # Pravega splits segments with more
    hpa: str = "pravega-reader.yaml"
    kind: str = "Deployment"
    max_replicas: int | None = None
    observations: list[StreamObservation] = field(default_factory=list)
    started: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Starts the writer with the beginning of the wave, the readers and the HPA."""
        self.folder.mkdir(parents=True, exist_ok=True)
        libraries = str(LIBRARIES)
        subprocess.run(["javac", "-d", self.folder, "-cp", libraries, _PROGRAM], check=True)
        self.pravega.create_stream(SCOPE, self.name, 1, self.segment_events_per_s)
        self.writer = self.started.enter_context(RateProcess("writer", self._command("write"), self.folder))
        until(lambda: self._readers() == 0, 120, "the writer answers", every_s=1.0)
        self.apply()
        self._began_s = time.time()

    def read_state(self) -> StreamObservation:
        """Writes at the rate of this moment, and reads the state."""
        at_s = time.time() - self._began_s
        rate, readers = self.wave.rate(at_s), self._readers()
        self.writer.set_rate(rate)
        segments = self.pravega.segments(SCOPE, self.name)
        return StreamObservation(at_s, rate, segments, self.replicas(), readers)

    def _readers(self) -> int:
        """The newest answer of the writer, to the rate before."""
        answers = [line for line in self.writer.log.read_text().splitlines() if line.startswith("readers ")]
        if not answers:
            self.writer.set_rate(0)
        return int(answers[-1].split()[1])

    def _command(self, mode: str, reader: str = "") -> list[str]:
        options = ["-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{self.folder}:{LIBRARIES}"]
        return ["java", *options, "WaveStream", mode, self.pravega.controller, SCOPE, self.name, reader]

    def manifests(self) -> list[dict[str, Any]]:
        """The readers."""
        command = ["sh", "-c", f"exec {' '.join(self._command('read', '$HOSTNAME'))}"]
        return [self.target_with({"image": "reader:1", "command": command})]
