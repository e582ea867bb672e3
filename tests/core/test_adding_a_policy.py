"""A new policy takes its module and one entry of POLICIES: the worked example of CONTRIBUTING."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ENTRY = """
    Policy(
        name="pairs",
        module="pairs",
        needs=(Need(signals=("partitions",)),),
        follows_partitions=True,
    ),
)
NAMES ="""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """The output of a copy of the program with the policy `pairs`."""
    copy = tmp_path_factory.mktemp("program")
    shutil.copytree(TESTS.parent / "adapter", copy / "adapter", ignore=shutil.ignore_patterns("__pycache__"))
    policies = copy / "adapter" / "core" / "policies"
    shutil.copy(TESTS / "core" / "pairs_policy.py", policies / "pairs.py")
    registry = policies / "__init__.py"
    registry.write_text(registry.read_text("utf-8").replace("\n)\nNAMES =", ENTRY), "utf-8")
    command = [sys.executable, str(TESTS / "core" / "pairs_decisions.py")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy), str(TESTS)])}
    ran = subprocess.run(command, env=env, cwd=copy, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_new_policy_decides(found):
    assert found["required_workers"] == 8


def test_the_sentence_uses_the_wording_of_its_properties(found):
    assert found["sentence"] == "Scaling up from 4 to 8 workers: the load needs 8 workers for 16 segments"


def test_the_sentence_of_another_policy_offers_it(found):
    assert "the policy segments or pairs" in found["advice"]


def test_the_configuration_accepts_it_and_names_it_for_a_misspelt_one(found):
    assert found["configured"] == {"policy": "pairs"}
    assert [fault for fault in found["misspelt"] if "pairs" in fault] == found["misspelt"] != []
