"""The software bill of materials of an image (CycloneDX JSON): sbom.py LOCK, run by the image's Python.

It lists the Python packages of the lock that are installed, and the jars among their files. It contains no time and no
random number, so the same image has the same bill.
"""

import json
import re
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

Component = dict[str, object]


def locked_versions(lock: str) -> dict[str, set[str]]:
    """Name -> versions of a lock: a lock for several Pythons may hold two of one package."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)", lock, re.MULTILINE):
        found.setdefault(normalized(name), set()).add(version)
    return found


def normalized(name: str) -> str:
    """The name as package registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def python_components(installed: Iterator[Distribution], locked: Mapping[str, set[str]]) -> Iterator[Component]:
    """One component a package. Raises ValueError if one is not in the lock."""
    for each in installed:
        name = normalized(each.name)
        if each.version not in locked.get(name, ()):
            raise ValueError(f"{name} {each.version} is installed, the lock has {locked.get(name, 'no version')}")
        found = _component(name, each.version, f"pkg:pypi/{name}@{each.version}")
        licence = _licence(each)
        yield found | ({"licenses": [{"expression": licence}]} if licence else {})


def _licence(package: Distribution) -> str | None:
    return next(iter(package.metadata.get_all("License-Expression") or ()), None)


def jar_components(folder: Path) -> Iterator[Component]:
    """One component a jar, with its Maven coordinates where the jar has them."""
    for jar in sorted(folder.rglob("*.jar")):
        name, version = _split(jar.stem)
        group = _group(jar, name)
        yield _component(name, version, f"pkg:maven/{group}/{name}@{version}" if group else None)


def _split(stem: str) -> tuple[str, str]:
    """hadoop-client-api-3.5.0 -> hadoop-client-api, 3.5.0."""
    found = re.fullmatch(r"(.+?)-(\d.*)", stem)
    return (found[1], found[2]) if found else (stem, "")


def _group(jar: Path, name: str) -> str | None:
    with zipfile.ZipFile(jar) as content:
        paths = [path.split("/") for path in content.namelist() if path.endswith("/pom.properties")]
    return next((path[2] for path in paths if len(path) == 5 and path[3] == name), None)


def _component(name: str, version: str, purl: str | None) -> Component:
    found: Component = {"type": "library", "bom-ref": purl or f"{name}@{version}", "name": name, "version": version}
    return found | ({"purl": purl} if purl else {})


def bill(components: list[Component]) -> dict[str, object]:
    """The document, in order of the components' references."""
    ordered = sorted(components, key=lambda each: str(each["bom-ref"]))
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": ordered}


def main(lock: str) -> None:
    """Prints the bill of the environment of this Python."""
    folder = Path(sysconfig.get_path("purelib"))
    packages = python_components(iter(distributions(path=[str(folder)])), locked_versions(Path(lock).read_text()))
    json.dump(bill([*packages, *jar_components(folder)]), sys.stdout, indent=1)


if __name__ == "__main__":
    main(*sys.argv[1:])
