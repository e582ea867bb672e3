"""charts/backlog-adapter: certificates made by serve, by cert-manager or by the user, and who may write what."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapter.config import Config

CHART = Path(__file__).parents[2] / "charts" / "backlog-adapter"
NAME = "orders-backlog-adapter"
PIPELINE = f"{NAME}-pipeline"
EXTERNAL = "v1beta1.external.metrics.k8s.io"
CUSTOM = ["v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"]
OWN = [f"{NAME}-tls", f"{NAME}-pipeline-tls", f"{NAME}-token"]
CA = "LS0tLS1CRUdJTiA="
CERT_MANAGER = ("tls.mode=cert-manager",)
SECRET = (
    "tls.mode=secret",
    "tls.serve.existingSecret=serve",
    f"tls.serve.caBundle={CA}",
    "tls.pipeline.existingSecret=pipeline",
)
BOTH_GROUPS = "apiService.custom.create=true"
MODES = pytest.mark.parametrize("values", [(), CERT_MANAGER, SECRET], ids=["self", "cert-manager", "secret"])

Objects = dict[tuple[str, str], dict[str, Any]]
Render = Callable[..., Objects]
Helm = Callable[..., subprocess.CompletedProcess[str]]


def of_kind(objects: Objects, kind: str) -> dict[str, dict[str, Any]]:
    return {name: item for (found, name), item in objects.items() if found == kind}


def config(objects: Objects) -> Config:
    return Config.model_validate(yaml.safe_load(objects["ConfigMap", NAME]["data"]["config.yaml"]))


def mounted(objects: Objects, deployment: str) -> dict[str, tuple[str, list[str]]]:
    """Volume -> Secret and its keys."""
    volumes = objects["Deployment", deployment]["spec"]["template"]["spec"]["volumes"]
    return {
        volume["name"]: (volume["secret"]["secretName"], [item["key"] for item in volume["secret"]["items"]])
        for volume in volumes
        if "secret" in volume
    }


def rules_of(objects: Objects, account: str) -> list[dict[str, Any]]:
    """The rules that a service account is bound to by roles of the chart."""
    bindings = [item for (kind, _), item in objects.items() if kind.endswith("Binding")]
    roles = [item["roleRef"] for item in bindings if account in [each["name"] for each in item["subjects"]]]
    found = [objects[role["kind"], role["name"]] for role in roles if (role["kind"], role["name"]) in objects]
    return [rule for role in found for rule in role["rules"]]


# GitOps: a rendering depends on nothing but the values.


@MODES
def test_two_renderings_are_equal(helm: Helm, values: tuple[str, ...]) -> None:
    options = [word for value in (*values, BOTH_GROUPS) for word in ("--set", value)]
    once, again = (helm("template", "orders", str(CHART), *options) for _ in range(2))
    assert once.returncode == 0, once.stderr
    assert once.stdout == again.stdout


def test_no_template_uses_lookup_or_random_functions() -> None:
    files = [file for file in (CHART / "templates").rglob("*") if file.is_file()]
    found = re.compile(
        r"\b(lookup|gen[A-Z]\w*|rand[A-Z]\w*|shuffle|uuidv4|now|date\w*|derivePassword|htpasswd|bcrypt)\b"
    )
    actions = re.compile(r"\{\{(?!-? ?/\*).*?\}\}", re.DOTALL)
    used = {
        (file.name, match)
        for file in files
        for action in actions.findall(file.read_text())
        for match in found.findall(action)
    }
    assert len(files) > 10
    assert used == set()


def test_the_objects_that_serve_writes_have_no_content_of_the_chart(render: Render) -> None:
    objects = render(BOTH_GROUPS)
    assert sorted(of_kind(objects, "Secret")) == sorted(OWN)
    assert all(
        item.keys() <= {"apiVersion", "kind", "type", "metadata"} for item in of_kind(objects, "Secret").values()
    )
    assert all("caBundle" not in item["spec"] for item in of_kind(objects, "APIService").values())


# Each role has its own key and no other.


def test_serve_has_no_secret_mounted_and_its_files_are_in_memory(render: Render) -> None:
    objects = render()
    pod = objects["Deployment", NAME]["spec"]["template"]["spec"]
    assert mounted(objects, NAME) == {}
    assert {"name": "issued", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}} in pod["volumes"]
    (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "issued"]
    serving = config(objects).serving
    files = [serving.cert_file, serving.key_file, serving.snapshot_ca_file, serving.snapshot_token_file]
    assert {str(Path(str(file)).parent) for file in files} == {mount["mountPath"]}


@pytest.mark.parametrize(
    ("values", "serve", "pipeline"),
    [
        ((), {}, OWN[1]),
        (CERT_MANAGER, {"tls": (OWN[0], ["tls.crt", "tls.key"]), "pipeline-ca": (OWN[1], ["ca.crt"])}, OWN[1]),
        (SECRET, {"tls": ("serve", ["tls.crt", "tls.key"]), "pipeline-ca": ("pipeline", ["ca.crt"])}, "pipeline"),
    ],
    ids=["self", "cert-manager", "secret"],
)
def test_each_pod_has_its_own_key_alone(
    render: Render, values: tuple[str, ...], serve: dict[str, Any], pipeline: str
) -> None:
    """The pipeline parses untrusted answers of sources; the cluster trusts the servers."""
    objects = render(*values)
    assert mounted(objects, NAME) == serve
    own = {"tls": (pipeline, ["tls.crt", "tls.key"]), "pipeline-ca": (pipeline, ["ca.crt"])}
    assert mounted(objects, PIPELINE) == {**own, "token": (OWN[2], ["token"])}


@pytest.mark.parametrize("values", [(), CERT_MANAGER, SECRET], ids=["self", "cert-manager", "secret"])
def test_explain_in_the_pod_of_the_pipeline_finds_its_ca(render: Render, values: tuple[str, ...]) -> None:
    objects = render(*values)
    mounts = objects["Deployment", PIPELINE]["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    (folder,) = [mount["mountPath"] for mount in mounts if mount["name"] == "pipeline-ca"]
    assert config(objects).serving.snapshot_ca_file == f"{folder}/ca.crt"


# Rights.


def test_serve_may_write_its_own_objects_by_name_and_nothing_else(render: Render) -> None:
    rules = rules_of(render(BOTH_GROUPS), NAME)
    assert [rule for rule in rules if {"patch", "create", "update", "delete", "*"} & set(rule["verbs"])] == [
        {
            "apiGroups": ["apiregistration.k8s.io"],
            "resources": ["apiservices"],
            "resourceNames": [EXTERNAL, *CUSTOM],
            "verbs": ["patch"],
        },
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": OWN, "verbs": ["get", "patch"]},
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": [NAME],
            "verbs": ["create", "delete", "get", "patch"],
        },
    ]


@pytest.mark.parametrize(
    ("values", "secrets", "api_services"),
    [
        pytest.param((), OWN, [EXTERNAL], id="self"),
        pytest.param(("apiService.external.create=false",), OWN, [], id="self, without an API service"),
        pytest.param(("token.existingSecret=own",), OWN[:2], [EXTERNAL], id="self, with a given token"),
        pytest.param(CERT_MANAGER, OWN[2:], [], id="cert-manager: the token alone"),
        pytest.param(SECRET, OWN[2:], [], id="secret: the token alone"),
        pytest.param((*SECRET, "token.existingSecret=own"), [], [], id="all is given"),
    ],
)
def test_serve_may_write_what_it_makes(
    render: Render, values: tuple[str, ...], secrets: list[str], api_services: list[str]
) -> None:
    objects = render(*values)
    written = {
        resource: rule["resourceNames"]
        for rule in rules_of(objects, NAME)
        if "patch" in rule["verbs"]
        for resource in rule["resources"]
    }
    assert written.get("secrets", []) == secrets == sorted(of_kind(objects, "Secret"), key=OWN.index)
    assert written.get("apiservices", []) == api_services
    assert written.get("leases", []) == ([NAME] if secrets else [])
    issuer = config(objects).serving.issuer
    made = [] if issuer is None else [issuer.secret, issuer.pipeline_secret, issuer.token_secret]
    assert [name for name in made if name] == secrets
    written_to = () if issuer is None or issuer.secret is None else config(objects).serving.api_services
    assert list(written_to) == api_services


@pytest.mark.parametrize("mode", [(), CERT_MANAGER, SECRET], ids=["self", "cert-manager", "secret"])
@pytest.mark.parametrize(("created", "expected"), [("true", (EXTERNAL,)), ("false", ())])
def test_serve_expects_the_api_services_that_the_chart_creates(
    render: Render, mode: tuple[str, ...], created: str, expected: tuple[str, ...]
) -> None:
    objects = render(*mode, f"apiService.external.create={created}")
    assert config(objects).serving.api_services == expected


def test_the_pipeline_may_write_nothing(render: Render) -> None:
    verbs = {verb for rule in rules_of(render(), PIPELINE) for verb in rule["verbs"]}
    assert verbs <= {"get", "list", "watch"}


# The lives of certificates.


def test_the_lives_of_certificates_are_settings(render: Render) -> None:
    issuer = config(render("config.serving.issuer.leaf_lifetime_s=86400")).serving.issuer
    assert issuer is not None
    assert (issuer.leaf_lifetime_s, issuer.lease) == (86400, NAME)


def test_the_lives_of_certificates_stay_in_the_values_where_serve_makes_none(render: Render) -> None:
    objects = render(*SECRET, "token.existingSecret=token", "config.serving.issuer.leaf_lifetime_s=86400")
    assert config(objects).serving.issuer is None


def test_a_certificate_is_renewed_before_its_alert_fires(render: Render) -> None:
    rules = yaml.safe_load((CHART.parents[1] / "dashboards" / "rules" / "alerts.yaml").read_text())
    found = [rule["expr"] for group in rules["groups"] for rule in group["rules"] if "certificate_days" in rule["expr"]]
    (days,) = {int(expression.rpartition("<")[2]) for expression in found}
    issuer = config(render()).serving.issuer
    assert issuer is not None
    assert issuer.leaf_lifetime_s / 3 > days * 86_400
    renewed_h = {item["spec"].get("renewBefore") for item in of_kind(render(*CERT_MANAGER), "Certificate").values()}
    assert renewed_h == {None, "720h"}
    assert days * 24 < 720


# Given Secrets.


def test_given_secrets_and_their_ca_are_used(render: Render) -> None:
    objects = render(*SECRET, "token.existingSecret=token", BOTH_GROUPS)
    assert {item["spec"]["caBundle"] for item in of_kind(objects, "APIService").values()} == {CA}
    assert mounted(objects, NAME)["token"] == mounted(objects, PIPELINE)["token"] == ("token", ["token"])
    assert config(objects).serving.snapshot_token_file == "/run/secrets/backlog-adapter/token/token"


def test_no_ca_is_needed_without_an_api_service(render: Render) -> None:
    objects = render(*SECRET[:2], SECRET[3], "apiService.external.create=false")
    assert mounted(objects, NAME)["tls"][0] == "serve"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param(
            ["tls.serve.existingSecret=own"],
            "tls.serve.existingSecret is set and tls.mode is self: set tls.mode to secret",
            id="a Secret in another mode",
        ),
        pytest.param(
            ["tls.mode=secret", "tls.pipeline.existingSecret=own"],
            "tls.serve.existingSecret is required with tls.mode secret: a Secret with tls.crt and tls.key",
            id="a mode without its Secret",
        ),
        pytest.param([*SECRET[:2], SECRET[3]], "tls.serve.caBundle is required", id="a certificate without its CA"),
        pytest.param([f"tls.serve.caBundle={CA}"], "/tls/serve/existingSecret", id="a CA without its certificate"),
        *(
            pytest.param(
                [*SECRET[:2], f"tls.serve.caBundle={given}", SECRET[3]],
                "tls.serve.caBundle: expected PEM in base64 on one line; write the output of base64 -w0 ca.crt",
                id=id_,
            )
            for given, id_ in [("-----BEGIN", "a CA that is not in base64"), (f"{CA}\n{CA}", "a CA in several lines")]
        ),
        pytest.param(
            ["token.existingSecret=orders-backlog-adapter-token"],
            "token.existingSecret is orders-backlog-adapter-token, which is the name of a Secret of the chart",
            id="a Secret that an upgrade deletes",
        ),
        pytest.param(
            ["tls.issuerRef.kind=Issuer,tls.issuerRef.name=internal"],
            "tls.issuerRef is set and tls.mode is self: set tls.mode to cert-manager",
            id="an issuer in another mode",
        ),
        pytest.param(["tls.mode=helm"], "/tls/mode", id="an unknown mode"),
        pytest.param(["tls.issuerRef.kind=ClusterIssuer"], "/tls/issuerRef", id="an issuer without a name"),
    ],
)
def test_a_wrong_combination_is_refused_with_the_fix(helm: Helm, values: list[str], message: str) -> None:
    done = helm("template", "orders", str(CHART), *(word for value in values for word in ("--set", value)))
    assert done.returncode != 0
    assert message in done.stderr


# cert-manager, of which only the rendered objects are checked here.


def test_cert_manager_issues_both_certificates_for_their_services(render: Render) -> None:
    objects = render(*CERT_MANAGER)
    found = of_kind(objects, "Certificate")
    assert {name: item["spec"].get("dnsNames") for name, item in found.items()} == {
        f"{NAME}-ca": None,
        OWN[0]: [f"{NAME}.streaming.svc"],
        OWN[1]: [f"{PIPELINE}.streaming.svc"],
    }
    assert all(item["spec"]["secretName"] == name for name, item in found.items())
    assert {item["spec"]["issuerRef"]["name"] for item in found.values()} == set(of_kind(objects, "Issuer"))


def test_cert_manager_writes_the_ca_into_every_api_service(render: Render) -> None:
    found = of_kind(render(*CERT_MANAGER, BOTH_GROUPS), "APIService")
    key = "cert-manager.io/inject-ca-from"
    assert {item["metadata"]["annotations"][key] for item in found.values()} == {f"streaming/{OWN[0]}"}
    assert sorted(found) == sorted([EXTERNAL, *CUSTOM])


def test_an_issuer_of_the_user_replaces_the_own_ca(render: Render) -> None:
    objects = render(*CERT_MANAGER, "tls.issuerRef.kind=ClusterIssuer", "tls.issuerRef.name=internal")
    issuers = [item["spec"]["issuerRef"] for item in of_kind(objects, "Certificate").values()]
    assert issuers == [{"kind": "ClusterIssuer", "name": "internal"}] * 2
    assert of_kind(objects, "Issuer") == {}
