"""charts/backlog-adapter: what the chart's roles allow, and to whom."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CHART = str(Path(__file__).parents[2] / "charts" / "backlog-adapter")
NAME = "orders-backlog-adapter"
Objects = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Objects]
Helm = Callable[..., subprocess.CompletedProcess[str]]
RBAC = {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}


def rules_of_the_pipeline(objects: Objects) -> list[dict[str, list[str]]]:
    rules: list[dict[str, list[str]]] = objects["ClusterRole", f"streaming:{NAME}-pipeline"]["rules"]
    return rules


@pytest.mark.parametrize(
    ("target", "group", "resource"),
    [
        pytest.param("flink.apache.org", "flink.apache.org", "flinkdeployments", id="Flink Kubernetes operator"),
        pytest.param("flinkoperator.k8s.io", "flinkoperator.k8s.io", "flinkclusters", id="Flink operator of Spotify"),
        pytest.param("argoproj.io", "argoproj.io", "rollouts", id="Argo Rollouts"),
        pytest.param("numaflow.numaproj.io/vertices", "numaflow.numaproj.io", "vertices", id="any resource"),
    ],
)
def test_the_pipeline_may_read_the_scale_of_an_extra_target_and_nothing_else(
    render: Render, target: str, group: str, resource: str
) -> None:
    found = rules_of_the_pipeline(render(f"rbac.extraScaleTargets={{{target}}}"))
    assert found[len(rules_of_the_pipeline(render())) :] == [
        {"apiGroups": [group], "resources": [f"{resource}/scale"], "verbs": ["get"]}
    ]


def test_extra_rules_are_added_to_the_role_of_the_pipeline(render: Render) -> None:
    rule = "rbac.extraRules[0]"
    values = [f"{rule}.apiGroups={{example.org}}", f"{rule}.resources={{queues}}", f"{rule}.verbs={{get,list}}"]
    assert {"apiGroups": ["example.org"], "resources": ["queues"], "verbs": ["get", "list"]} in rules_of_the_pipeline(
        render(*values)
    )


def test_no_right_is_created_without_rbac(render: Render) -> None:
    assert not {kind for kind, _ in render("rbac.create=false")} & RBAC


@pytest.mark.parametrize(("role", "default"), [("serve", NAME), ("pipeline", f"{NAME}-pipeline")])
def test_a_role_uses_a_service_account_that_exists(render: Render, role: str, default: str) -> None:
    objects = render(f"{role}.serviceAccount.create=false", f"{role}.serviceAccount.name=own")
    assert objects["Deployment", default]["spec"]["template"]["spec"]["serviceAccountName"] == "own"
    assert ("ServiceAccount", default) not in objects
    assert "own" in {
        subject["name"]
        for (kind, _), item in objects.items()
        if kind.endswith("Binding")
        for subject in item["subjects"]
    }


@pytest.mark.parametrize("role", ["serve", "pipeline"])
def test_the_service_account_of_other_pods_is_not_used_by_default(helm: Helm, role: str) -> None:
    done = helm("template", "orders", CHART, "--set", f"{role}.serviceAccount.create=false")
    assert f"{role}.serviceAccount.name is required without {role}.serviceAccount.create: " in done.stderr


@pytest.mark.parametrize(
    "values",
    [
        "serve.serviceAccount.name=own,pipeline.serviceAccount.name=own",
        f"serve.serviceAccount.name={NAME}-pipeline",
        f"pipeline.serviceAccount.create=false,pipeline.serviceAccount.name={NAME}",
    ],
)
def test_the_pipeline_does_not_share_the_service_account_of_serve(helm: Helm, values: str) -> None:
    done = helm("template", "orders", CHART, "--set", values)
    assert "serve and pipeline have one service account, " in done.stderr


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        pytest.param(
            "token.existingSecret=",
            "own: name two, because only serve may read and write the Secrets that it makes",
            id="serve makes the token",
        ),
        pytest.param(
            "",
            "own: set pipeline.serviceAccount.create to false, or name two",
            id="the chart would create the account twice",
        ),
        pytest.param("pipeline.serviceAccount.create=false", "", id="serve makes no Secret"),
    ],
)
def test_one_service_account_is_refused_for_a_true_reason(helm: Helm, values: str, fault: str) -> None:
    given = ["--values", f"{CHART}/ci/secret-certificates-values.yaml"]
    one = "serve.serviceAccount.name=own,pipeline.serviceAccount.name=own"
    done = helm("template", "orders", CHART, *given, "--set", f"{one},{values}")
    assert fault in done.stderr
    assert (done.returncode == 0) == (not fault), done.stderr


def test_an_api_version_is_no_scale_target(helm: Helm) -> None:
    done = helm("template", "orders", CHART, "--set", "rbac.extraScaleTargets={flink.apache.org/v1beta1}")
    assert (
        "rbac.extraScaleTargets: expected GROUP/RESOURCE, got the API version flink.apache.org/v1beta1; " in done.stderr
    )


def test_a_service_account_has_the_annotations_of_a_workload_identity(render: Render) -> None:
    identity = r"pipeline.serviceAccount.annotations.eks\.amazonaws\.com/role-arn=arn:aws:iam::1:role/lag"
    account = render(identity)["ServiceAccount", f"{NAME}-pipeline"]
    assert account["metadata"]["annotations"] == {"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/lag"}
