"""Removes from a virtual environment what the images do not use: prune.py PATTERNS_FILE, run by its Python.

Files that match a pattern of the file, and the native libraries of other platforms inside jars.
"""

import platform
import shutil
import sys
import sysconfig
import zipfile
from pathlib import Path

# Jars with one native library a platform. RocksDB's is the largest of all jars.
_MULTI_PLATFORM = ("rocksdbjni-*.jar", "zstd-jni-*.jar")
_NATIVE = (".so", ".dll", ".dylib", ".jnilib")
_OURS = {"x86_64": ("-linux64.so", "linux/amd64/"), "aarch64": ("-linux-aarch64.so", "linux/aarch64/")}


def patterns(file: Path) -> list[str]:
    """The patterns of a file: its lines without comments."""
    lines = (line.strip() for line in file.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def remove(folder: Path, pattern: str) -> None:
    """Removes each file and folder below the folder that matches."""
    for path in sorted(folder.glob(pattern)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def keep_native(jar: Path, machine: str) -> None:
    """Rewrites a jar without the native libraries of other platforms."""
    ours = _OURS[machine]
    smaller = jar.with_suffix(".smaller")
    with zipfile.ZipFile(jar) as old, zipfile.ZipFile(smaller, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            if not entry.filename.endswith(_NATIVE) or any(part in entry.filename for part in ours):
                new.writestr(entry, old.read(entry))
    smaller.replace(jar)


def main(patterns_file: str) -> None:
    """Prunes the environment of this Python."""
    folder = Path(sysconfig.get_path("purelib"))
    for pattern in patterns(Path(patterns_file)):
        remove(folder, pattern)
    for name in _MULTI_PLATFORM:
        for jar in folder.glob(f"pyspark/jars/{name}"):
            keep_native(jar, platform.machine())


if __name__ == "__main__":
    main(sys.argv[1])
