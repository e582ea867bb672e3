"""One Spark session for all tests of a run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline_stream import OPENER, RULES, Stream, config_of

from adapter.pipeline.query import QueryPlan
from adapter.pipeline.session import Session, settings


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    here = str(Path(__file__).parent)
    before = os.environ.get("PYTHONPATH")
    # Workers import the source by name.
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *([before] if before else [])])
    session = Session(settings("512m", "local[2]", 1), str(tmp_path_factory.mktemp("spark") / "spark.log"))
    yield session
    session.close()
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    return Stream(tmp_path, QueryPlan(config=config_of(tmp_path), rules=RULES, opener=OPENER))
