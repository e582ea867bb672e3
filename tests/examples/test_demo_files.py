"""The files of examples/demo agree with each other, with hpa/ and with the version of the images."""

from pathlib import Path
from typing import Any

import yaml

from adapter import __version__, config
from examples.demo import load

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo"
OBJECTS = {
    (each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all((DEMO / "demo.yaml").read_text())
}
KUSTOMIZATION = yaml.safe_load((DEMO / "kustomization.yaml").read_text())


def container(name: str) -> dict[str, Any]:
    (found,) = OBJECTS["Deployment", name]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_the_hpa_is_the_one_of_hpa_with_another_name() -> None:
    text = (ROOT / "hpa" / "kafka-consumer.yaml").read_text().replace("orders", "demo")
    assert OBJECTS["HorizontalPodAutoscaler", "demo"]["spec"] == yaml.safe_load(text)["spec"]


def test_the_values_are_a_configuration_whose_workload_is_the_one_of_the_hpa() -> None:
    values = yaml.safe_load((DEMO / "values.yaml").read_text())["config"]
    parsed = config.parse(yaml.safe_dump({**values, "pipeline": {"checkpoint": "none"}}), "values.yaml")
    (metric,) = OBJECTS["HorizontalPodAutoscaler", "demo"]["spec"]["metrics"]
    selected = metric["external"]["metric"]["selector"]["matchLabels"]["workload"]
    assert [(each.namespace, each.name) for each in parsed.workloads] == [(KUSTOMIZATION["namespace"], selected)]


def test_the_arguments_of_the_generator_are_a_wave() -> None:
    arguments = [*container("demo-load")["command"][2:], *container("demo-load")["args"]]
    assert load.shape_of(load.parser().parse_args(arguments)) == load.Sine(150, 850, 600)


def test_the_image_and_the_programs_are_those_of_the_checkout() -> None:
    (image,) = KUSTOMIZATION["images"]
    assert image["newTag"] == __version__
    assert {container(name)["image"] for name in ("demo", "demo-load")} == {image["name"]}
    mounted = {container("demo-load")["command"][1], container("demo")["command"][1]}
    files = {name for each in KUSTOMIZATION["configMapGenerator"] for name in each.get("files", [])}
    assert mounted == {f"/program/{name}" for name in files}


def test_the_readme_shows_arguments_that_the_generator_takes() -> None:
    rows = [line.split("`")[1] for line in (DEMO / "README.md").read_text().splitlines() if line.startswith("| `")]
    assert {row.split()[0] for row in rows} == {"sine", "step", "ramp", "replay"}
    for row in rows:
        load.parser().parse_args(["--bootstrap-servers", "kafka:9092", "--topic", "demo", *row.split()])
