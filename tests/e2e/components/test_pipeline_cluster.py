"""The live pipeline on a cluster: two standalone Spark workers make the decisions of a plain fold, bit for bit."""

import os
import sys
from base64 import b64decode
from pathlib import Path

import pytest
from parts.process import Process, until
from parts.spark import ENV, standalone_cluster

from adapter.serving.snapshots.snapshot import Snapshot, decode

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

PIPELINE_TESTS = Path(__file__).parents[2] / "pipeline"  # the recorded source, and the fold to compare with
SNAPSHOTS, PUBLISHED_WITHIN_S = 5, 300.0


def published(folder: Path) -> list[Snapshot]:
    """Whole lines only: the last one may be incomplete."""
    file = folder / "published"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return [decode(b64decode(line)) for line in lines]


def test_two_standalone_workers_decide_as_a_plain_fold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PIPELINE_TESTS))
    from pipeline_stream import plain_fold, spans

    paths = os.pathsep.join([str(PIPELINE_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    with standalone_cluster(tmp_path, PYTHONPATH=paths) as master:
        command = [sys.executable, str(PIPELINE_TESTS / "pipeline_child.py"), str(tmp_path), "0", master]
        with Process("pipeline", command, tmp_path, ENV | {"PYTHONPATH": paths}):
            until(lambda: len(published(tmp_path)) >= SNAPSHOTS, PUBLISHED_WITHIN_S, "five ticks are published")
    found = published(tmp_path)
    expected = plain_fold(spans(tmp_path)[0][0], int(found[-1].at_s))
    assert any(entry.decision.required_workers is not None for entry in found[-1].entries)
    for snapshot in found:
        assert [entry.decision for entry in snapshot.entries] == expected[int(snapshot.at_s)]
    executors = {path.parent.name for path in tmp_path.glob("worker-*/app-*")}
    assert executors == {"worker-1", "worker-2"}
