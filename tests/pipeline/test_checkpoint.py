import json
import shutil
from pathlib import Path
from typing import Any

import pyspark
import pytest
import structlog
from pipeline_stream import config_of

from adapter.config import Config
from adapter.errors import CheckpointError, SetupError
from adapter.pipeline.checkpoint import MARKER, claim, needs_empty_stream


def wrote(folder: Path, **changes: Any) -> Path:
    """A checkpoint that was used once, with its marker changed; its marker."""
    checkpoint = claim(config_of(folder))
    checkpoint.close()
    (checkpoint.folder / "stream" / "commits").mkdir(parents=True)
    (checkpoint.folder / "stream" / "commits" / "0").touch()
    marker = checkpoint.folder / MARKER
    marker.write_text(json.dumps(json.loads(marker.read_text()) | changes))
    return marker


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        pytest.param({"format": 99}, "it has format 99 instead of 1", id="another release"),
        pytest.param({"spark": "3.5.5"}, f"it has spark 3.5.5 instead of {pyspark.__version__}", id="another Spark"),
        pytest.param({"tick_s": 15}, "it has tick_s 15 instead of 1", id="another tick"),
        pytest.param(
            {"format": 0, "tick_s": 5}, "it has format 0 instead of 1; it has tick_s 5 instead of 1", id="both"
        ),
    ],
)
def test_a_stream_of_another_version_is_moved_away(tmp_path: Path, changes: dict[str, Any], cause: str) -> None:
    marker = wrote(tmp_path, state_partitions=4, **changes)
    written = {name: json.loads(marker.read_text())[name] for name in ("format", "spark", "tick_s")}
    aside = marker.parent / "stream.format-{format}-spark-{spark}-tick_s-{tick_s}".format(**written)
    with structlog.testing.capture_logs() as logs:
        checkpoint = claim(config_of(tmp_path))
    assert [(line["cause"], line["moved_to"]) for line in logs] == [(cause, str(aside))]
    assert not Path(checkpoint.stream).exists()
    assert (aside / "commits" / "0").exists()
    assert checkpoint.state_partitions == config_of(tmp_path).pipeline.cores
    checkpoint.close()
    with structlog.testing.capture_logs() as logs:
        claim(config_of(tmp_path)).close()
    assert logs == []


def start_with(folder: Path, tick_s: int, *, cores: int = 1, finished: bool = True) -> tuple[str, int, bool]:
    """Use the checkpoint once. Returns what began its stream, its state partitions, and whether one was moved."""
    with structlog.testing.capture_logs() as logs:
        checkpoint = claim(with_tick(folder, tick_s, cores))
    checkpoint.close()
    stream = Path(checkpoint.stream)
    if not stream.exists():
        (stream / "commits").mkdir(parents=True)
        (stream / "metadata").write_text(f"of tick {tick_s}")
    if finished:
        (stream / "commits" / "0").touch()
    return (stream / "metadata").read_text(), checkpoint.state_partitions, any("moved_to" in line for line in logs)


def with_tick(folder: Path, tick_s: int, cores: int = 1) -> Config:
    config = config_of(folder)
    pipeline = config.pipeline.model_copy(update={"cores": cores})
    return config.model_copy(
        update={"timing": config.timing.model_copy(update={"tick_s": tick_s}), "pipeline": pipeline}
    )


def test_a_rollback_continues_its_own_stream_with_its_partitions(tmp_path: Path) -> None:
    assert start_with(tmp_path, 15, cores=4) == ("of tick 15", 4, False)
    assert start_with(tmp_path, 51, cores=2) == ("of tick 51", 2, True)
    assert start_with(tmp_path, 15, cores=2) == ("of tick 15", 4, True)
    assert start_with(tmp_path, 51, cores=3) == ("of tick 51", 2, True)
    assert start_with(tmp_path, 51, cores=3) == ("of tick 51", 2, False)


def test_only_one_other_stream_is_kept(tmp_path: Path) -> None:
    for tick_s in (15, 20, 30):
        start_with(tmp_path, tick_s)
    assert [each.name[-9:] for each in tmp_path.glob("checkpoint/stream.*")] == ["tick_s-20"]
    assert start_with(tmp_path, 15) == ("of tick 15", 1, True)


def test_a_stream_without_a_finished_batch_replaces_no_other(tmp_path: Path) -> None:
    start_with(tmp_path, 15)
    start_with(tmp_path, 51, finished=False)
    assert start_with(tmp_path, 30) == ("of tick 30", 1, False)
    assert start_with(tmp_path, 15) == ("of tick 15", 1, True)


@pytest.mark.parametrize("has_marker", [False, True], ids=["before the new marker", "after it"])
def test_a_process_that_ended_before_it_moved_a_stream_back_does_so_later(tmp_path: Path, has_marker: bool) -> None:
    start_with(tmp_path, 15, cores=4)
    start_with(tmp_path, 51)
    marker = tmp_path / "checkpoint" / MARKER
    if has_marker:
        fitting = next(tmp_path.glob("checkpoint/stream.*"))
        marker.write_text((fitting / MARKER).read_text())
    shutil.rmtree(tmp_path / "checkpoint" / "stream")
    assert start_with(tmp_path, 15) == ("of tick 15", 4, False)


def test_who_removes_the_stream_and_its_marker_starts_empty(tmp_path: Path) -> None:
    start_with(tmp_path, 15, cores=4)
    start_with(tmp_path, 51)
    (tmp_path / "checkpoint" / MARKER).unlink()
    shutil.rmtree(tmp_path / "checkpoint" / "stream")
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):  # also if the first process ends before Spark makes a stream
            checkpoint = claim(with_tick(tmp_path, 15, cores=2))
            checkpoint.close()
            assert (Path(checkpoint.stream).exists(), checkpoint.state_partitions) == (False, 2)
    assert logs == []
    assert start_with(tmp_path, 15, cores=2) == ("of tick 15", 2, False)
    assert start_with(tmp_path, 51) == ("of tick 51", 1, True)


def test_a_process_that_ended_after_it_moved_a_stream_leaves_a_usable_checkpoint(tmp_path: Path) -> None:
    marker = wrote(tmp_path, spark="3.5.5")
    (marker.parent / "stream").rename(marker.parent / "stream.format-1")
    claim(config_of(tmp_path)).close()
    assert json.loads(marker.read_text())["spark"] == pyspark.__version__


@pytest.mark.parametrize("content", ['{"format"', '{"state_partitions": 0}'], ids=["truncated", "without partitions"])
def test_a_damaged_marker_is_refused_and_stays(tmp_path: Path, content: str) -> None:
    marker = wrote(tmp_path)
    marker.write_text(content)
    with pytest.raises(CheckpointError, match=f"{MARKER} cannot be read") as refused:
        claim(config_of(tmp_path))
    assert "move this one away" in str(refused.value)
    assert marker.read_text() == content


def test_a_stream_without_a_marker_is_refused(tmp_path: Path) -> None:
    wrote(tmp_path).unlink()
    with pytest.raises(CheckpointError, match=f"it has a stream, but no {MARKER}"):
        claim(config_of(tmp_path))


def test_the_first_start_fixes_the_state_partitions(tmp_path: Path) -> None:
    wrote(tmp_path, state_partitions=4)
    with claim(config_of(tmp_path)).lock as _:
        pass
    checkpoint = claim(config_of(tmp_path))
    checkpoint.close()
    assert checkpoint.state_partitions == 4


def test_sources_can_be_added_and_removed(tmp_path: Path) -> None:
    marker = wrote(tmp_path)
    claim(config_of(tmp_path, ("recorded", "dead"))).close()
    assert json.loads(marker.read_text())["sources"] == ["dead", "recorded"]


def test_a_checkpoint_in_use_is_refused_until_it_is_released(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    first = claim(config)
    with pytest.raises(SetupError, match="another process uses"):
        claim(config, orphan_gone_within_s=0.0)
    first.close()
    claim(config, orphan_gone_within_s=0.0).close()


def test_a_file_in_place_of_the_folder_is_reported_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").write_text("a file")
    with pytest.raises(SetupError, match=r"pipeline\.checkpoint: expected a folder, and .*/checkpoint is a file"):
        claim(config_of(tmp_path))


def test_a_full_volume_is_reported_with_the_value_that_enlarges_it(tmp_path: Path) -> None:
    config = config_of(tmp_path)
    folder = Path(config.pipeline.checkpoint)
    folder.mkdir(exist_ok=True)
    (folder / f".{MARKER}.part").symlink_to("/dev/full")
    with pytest.raises(SetupError) as raised:
        claim(config)
    assert str(raised.value) == (
        f"pipeline.checkpoint: {folder} cannot be written: No space left on device; "
        "enlarge its volume (pipeline.persistence.size), or choose another folder"
    )


@pytest.mark.parametrize(
    ("cause", "has_batch", "is_permanent"),
    [
        pytest.param(
            "Failed to read log file file:/c/stream/offsets/3. Incomplete log", False, True, id="an empty file"
        ),
        pytest.param("Unexpected end-of-input in field name", False, True, id="a truncated file"),
        pytest.param(
            "[STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY] The checkpoint location", False, True, id="a first write"
        ),
        pytest.param("adapter.errors.ClockError: the newest tick is of 2031", False, True, id="a tick in the future"),
        pytest.param("Caused by: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An", True, True, id="a truncated state"),
        pytest.param("[CANNOT_LOAD_STATE_STORE.X] Caused by: No space left on device", True, False, id="a full disk"),
        pytest.param("OSError: cannot publish", True, False, id="a failed batch"),
        pytest.param("java.io.IOException: No space left on device", False, False, id="a full volume"),
        pytest.param("java.io.IOException: Input/output error", False, False, id="a volume that fails"),
        pytest.param("java.io.IOException: Stale file handle", False, False, id="a network volume that was replaced"),
        pytest.param("java.io.IOException: Connection timed out", False, False, id="a network volume without answer"),
        pytest.param("java.lang.OutOfMemoryError: Java heap space", False, False, id="too little memory"),
        pytest.param("IOException: error=12, Cannot allocate memory", False, False, id="no memory for a process"),
        pytest.param("error=11, Resource temporarily unavailable", False, False, id="too many processes"),
        pytest.param("MemoryError", False, False, id="too little memory in Python"),
        pytest.param("Python worker failed to connect back.", False, False, id="a slow machine"),
    ],
)
def test_only_a_failure_that_each_start_repeats_needs_an_empty_stream(
    cause: str, has_batch: bool, is_permanent: bool
) -> None:
    assert needs_empty_stream(cause, has_batch) is is_permanent


@pytest.mark.parametrize(
    ("finished", "stays"),
    [
        pytest.param(True, "newer", id="with a finished batch"),
        pytest.param(False, "older", id="with none, as if every start fails"),
    ],
)
def test_a_stream_that_is_moved_away_replaces_an_older_one(tmp_path: Path, finished: bool, stays: str) -> None:
    checkpoint = claim(config_of(tmp_path))
    checkpoint.close()
    moved = []
    for content in ("older", "newer"):
        commits = Path(checkpoint.stream) / "commits"
        commits.mkdir(parents=True)
        (commits.parent / "metadata").write_text(content)
        if finished:
            (commits / "0").touch()
        moved.append(checkpoint.move_stream_away())
        assert not Path(checkpoint.stream).exists()
    bad = checkpoint.folder / "stream.bad"
    assert moved == [bad, bad if finished else None]
    assert (bad / "metadata").read_text() == stays
