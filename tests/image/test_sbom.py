"""The bill of materials of an image."""

import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

from image.sbom import bill, jar_components, locked_versions, python_components

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(tmp_path: Path) -> list[Distribution]:
    folder = tmp_path / "Promql_Parser-0.7.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: Promql_Parser\nVersion: 0.7.0\nLicense-Expression: MIT\n"
    )
    return list(distributions(path=[str(tmp_path)]))


def test_a_package_has_its_version_address_and_licence(installed: list[Distribution]) -> None:
    (component,) = python_components(iter(installed), {"promql-parser": {"0.7.0"}})
    purl = "pkg:pypi/promql-parser@0.7.0"
    assert component == {
        "type": "library", "bom-ref": purl, "name": "promql-parser", "version": "0.7.0", "purl": purl,
        "licenses": [{"expression": "MIT"}],
    }  # fmt: skip


@pytest.mark.parametrize("locked", [{}, {"promql-parser": {"0.8.0"}}], ids=["not locked", "another version is locked"])
def test_an_installed_package_that_is_not_that_of_the_lock_is_an_error(
    locked: dict[str, set[str]], installed: list[Distribution]
) -> None:
    with pytest.raises(ValueError, match=r"promql-parser 0\.7\.0 is installed, the lock has"):
        list(python_components(iter(installed), locked))


@pytest.mark.parametrize("lock", ["serve", "pipeline"])
def test_every_requirement_of_a_lock_is_found(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text()
    assert sum(map(len, locked_versions(text).values())) == text.count("==") - text.count(" == ")


def test_a_jar_has_its_maven_coordinates(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log4j-core-2.25.4.jar", "w") as content:
        content.writestr("META-INF/maven/org.apache.logging.log4j/log4j-core/pom.properties", "")
        content.writestr("META-INF/maven/org.example/shaded/pom.properties", "")
    (component,) = jar_components(tmp_path)
    assert component["purl"] == "pkg:maven/org.apache.logging.log4j/log4j-core@2.25.4"


def test_a_jar_without_coordinates_has_its_name_and_version(tmp_path: Path) -> None:
    zipfile.ZipFile(tmp_path / "spark-core_2.13-4.3.0.jar", "w").close()
    (component,) = jar_components(tmp_path)
    assert (component["name"], component["version"], "purl" in component) == ("spark-core_2.13", "4.3.0", False)


def test_the_same_components_give_the_same_bill(tmp_path: Path) -> None:
    components: list[dict[str, object]] = [{"bom-ref": "b"}, {"bom-ref": "a"}]
    assert bill(components) == bill(components[::-1])
    assert bill(components)["bomFormat"] == "CycloneDX"
