"""The files that the images leave out."""

import zipfile
from pathlib import Path

import pytest

from image.prune import keep_native, patterns, remove

ROOT = Path(__file__).parents[2]
NEEDED = (
    "adapter/",
    "pyspark/jars/spark-core_",
    "pyspark/jars/spark-sql_",
    "pyspark/jars/rocksdbjni",
    "pyarrow/libarrow.so",
)


def test_comments_and_empty_lines_are_no_patterns(tmp_path: Path) -> None:
    (tmp_path / "patterns").write_text("# why\n\npandas/tests\n  pyspark/jars/hive-*.jar\n")
    assert patterns(tmp_path / "patterns") == ["pandas/tests", "pyspark/jars/hive-*.jar"]


def test_a_pattern_removes_the_files_and_folders_that_match_and_no_others(tmp_path: Path) -> None:
    for name in ("a/tests/one.py", "a/b/tests/two.py", "a/code.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    remove(tmp_path, "a/**/tests")
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")] == ["a/code.py"]


def test_a_pattern_without_a_match_is_no_error(tmp_path: Path) -> None:
    remove(tmp_path, "pandas/tests")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("machine", "kept"), [("x86_64", "librocks-linux64.so"), ("aarch64", "librocks-linux-aarch64.so")]
)
def test_a_jar_keeps_the_native_library_of_its_platform_and_all_classes(
    machine: str, kept: str, tmp_path: Path
) -> None:
    jar = tmp_path / "rocks.jar"
    natives = ("librocks-linux64.so", "librocks-linux64-musl.so", "librocks-linux-aarch64.so", "librocks-win64.dll")
    with zipfile.ZipFile(jar, "w") as content:
        for name in (*natives, "org/rocksdb/RocksDB.class"):
            content.writestr(name, name)
    keep_native(jar, machine)
    with zipfile.ZipFile(jar) as content:
        assert content.namelist() == [kept, "org/rocksdb/RocksDB.class"]
        assert content.read(kept) == kept.encode()
    assert list(tmp_path.iterdir()) == [jar]


def test_no_pattern_reaches_what_the_pipeline_needs() -> None:
    listed = patterns(ROOT / "image" / "unneeded.txt")
    assert len(listed) > 40
    assert [each for each in listed for needed in NEEDED if each.startswith(needed)] == []
