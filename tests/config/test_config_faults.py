"""Every way in which a file can be wrong, and the sentence that says so."""

from pathlib import Path

import pytest

from adapter.config import load, parse
from adapter.core.rules import POLICIES
from adapter.errors import ConfigError

SOURCES = """
  kafka: {kind: kafka, bootstrap_servers: "a:9092"}
  prom: {kind: prometheus, url: "http://prom:9090"}
  k8s: {kind: kubernetes}
  sim: {kind: trace, file: fleet.csv}
"""


def refusal_of(text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        parse(text, "c.yaml")
    return "\n".join(refused.value.faults)


def whole(rest: str, sources: str = "") -> str:
    return f"sources:{SOURCES}{sources}\npipeline: {{checkpoint: /c}}\n{rest}\n"


def workload(settings: str) -> str:
    return whole(f"workloads: [{{name: orders, read: [{{source: kafka, group: g, topics: [t]}}], {settings}}}]")


def reading(settings: str) -> str:
    return whole(f"workloads: [{{name: orders, read: [{{{settings}}}]}}]")


def fleet(settings: str) -> str:
    return whole(f"fleets: [{{name: many, {settings}}}]")


def source(settings: str) -> str:
    return whole("", f"  it: {{{settings}}}")


def prometheus(settings: str) -> str:
    return source(f'kind: prometheus, url: "http://p", {settings}')


def kafka(settings: str) -> str:
    return source(f'kind: kafka, bootstrap_servers: "a:9092", {settings}')


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        pytest.param("", ["c.yaml: is empty"], id="an empty file"),
        pytest.param("# only a comment", ["c.yaml: is empty"], id="a file of comments"),
        pytest.param(
            "a: sum(lag{job: x})",
            [
                "is not YAML: mapping values are not allowed here",
                "; write a text with ': ', such as a query, in quotes,",
            ],
            id="a query without quotes",
        ),
        pytest.param(
            "a: {b: sum(lag{c})}",
            ["is not YAML: expected ',' or '}'", "; write a text with braces, such as a query, in quotes"],
            id="a query without quotes in braces",
        ),
        pytest.param(
            "a: {{ .Values.a }}",
            ["a: expected text as the key in line 1, got a list or mapping; if it is a template, write its value"],
            id="a template",
        ),
        pytest.param(
            "a:\n  - b: 1\n    c: 2\n   d: 3",
            ["c.yaml line 4 column 4: is not YAML", "; indent this line as the keys or entries that it belongs to"],
            id="a line that is indented less",
        ),
        pytest.param("a: [", ["c.yaml line 1 column 5: is not YAML"], id="a bracket left open"),
        pytest.param(
            "a: 1\nb: [1,\nc: 2\nd: 3",
            ["line 4 column 2", "got ':', while parsing a flow sequence that begins in line 2"],
            id="a bracket left open above",
        ),
        pytest.param(
            "a: 1\nb:\n  - c: 1\n   d: 2",
            ["line 4 column 4", "while parsing a block collection that begins in line 3"],
            id="a wrong indentation",
        ),
        pytest.param("a:\n\tb: 1", ["line 2 column 1", "spaces, not tabs"], id="a tab"),
        pytest.param("- 1", ["expected a mapping", "got a list"], id="a list"),
        pytest.param("a: 1\nb: 2\na: 3", ["a: is set twice, in lines 1 and 3"], id="a key twice"),
        pytest.param("b: {a: 1, a: 3}", ["b.a: is set twice"], id="a key twice further in"),
        pytest.param("a: &x [*x]", ["a[0]: contains itself"], id="an alias to itself"),
        pytest.param(
            "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{f'*a{n - 1}, ' * 9}]}}\n" for n in range(1, 40)),
            ["merges (<<) add more than 1000000 keys; write the settings out"],
            id="merges that multiply",
        ),
        pytest.param(
            "a: {k: 1, <<: {m: 1}}", ['a["<<"]: helm lets a merge replace the settings above it'], id="a merge late"
        ),
        pytest.param('a: {b: "x\\x7f"}', ["a.b: has the control character \\x7f, with which helm fails"], id="DEL"),
        pytest.param("a: !!python/name:os.system x", ["a: has the tag"], id="a tag"),
        pytest.param("a: !!int ''", ["is not YAML"], id="a number that is none"),
        pytest.param(
            "a: 1\n---\nb: 1",
            [
                "c.yaml line 2 column 1: holds more than one document; keep that of the configuration, without "
                "manifests of Kubernetes"
            ],
            id="two",
        ),
        pytest.param("\x00", ["is not YAML"], id="control characters"),
        pytest.param("[" * 5000, ["nested too deeply"], id="very deep nesting"),
    ],
)
def test_text_that_is_not_a_document_is_refused(text: str, parts: list[str]):
    error = refusal_of(text)

    assert all(part in error for part in parts), error


def test_a_missing_file_is_reported_with_its_name(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"absent\.yaml: cannot be read: No such file"):
        load(tmp_path / "absent.yaml")


def test_a_file_that_is_not_utf_8_is_reported_with_its_name(tmp_path: Path):
    (tmp_path / "c.yaml").write_bytes(b"a: \xff")

    with pytest.raises(ConfigError, match="expected UTF-8 text, got other bytes at byte 3"):
        load(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(whole("servin: {}"), "servin: is not a setting here; did you mean serving?", id="an unknown part"),
        pytest.param(
            "sources: {}\npipeline: {checkpoint: c}",
            "sources: expected at least one entry, got an empty mapping; an example is {kafka: {kind: kafka, bootstrap",
            id="no source",
        ),
        pytest.param("sources: {}\npipeline: {}", "pipeline.checkpoint: is required: Directory", id="no checkpoint"),
        pytest.param(
            "sources: {k: {kind: kubernetes}}\npipeline: {checkpoint: s3://b/checkpoint}",
            "pipeline.checkpoint: expected a directory on a volume, such as /var/lib/backlog-adapter, got 's3://b/check",
            id="a checkpoint in object storage",
        ),
        pytest.param(
            "sources: {k: {kind: kubernetes}}\npipeline: {checkpoint: file:///var/lib/x}",
            "got 'file:///var/lib/x'; write /var/lib/x",
            id="a checkpoint as an address",
        ),
        pytest.param(
            whole("timing: {tick_s: 1.5}"), "timing.tick_s: expected a whole number, got 1.5", id="a broken tick"
        ),
        pytest.param(whole("timing: {tick_s: yes}"), "timing.tick_s: expected a whole number, got true", id="a yes"),
        pytest.param(whole("timing: 5"), "timing: expected a mapping, got 5", id="a number for a mapping"),
        pytest.param(
            whole("workloads: {a: {}}"),
            "workloads: expected a list, got a mapping; an example is [{name: orders, read: [{source: kafka, group: ",
            id="a mapping for a list",
        ),
        pytest.param(
            "sources: [{kind: kubernetes}]\npipeline: {checkpoint: c}",
            "sources: expected a mapping, got a list; an example is {kafka: {kind: kafka, bootstrap_servers:",
            id="a list for a mapping",
        ),
        pytest.param(
            source("url: a"), "sources.it.kind: expected one of prometheus, kafka", id="a source without kind"
        ),
        pytest.param(source("type: kafak"), "sources.it.kind: expected one of prometheus", id="a misspelt type"),
        pytest.param(source("kind: kafak"), "got 'kafak'; did you mean kafka?", id="a misspelt kind"),
        pytest.param(source('kind: prometheus, url: "p:9090"'), "sources.it.url: expected http://host", id="no scheme"),
        pytest.param(source('kind: pravega, url: "p:9090"'), "got 'p:9090'; write http://p:9090 (", id="the scheme"),
        pytest.param(source('kind: prometheus, url: "http://"'), "sources.it.url: expected http://host", id="no host"),
        pytest.param(source('kind: pravega, url: "ftp://a"'), "sources.it.url: expected http://host", id="ftp"),
        *(
            pytest.param(source(f'kind: prometheus, url: "{url}"'), f"got '{url}'{fix} (c", id=url)
            for url, fix in (
                ("${PROM_URL}", "; variables of the environment are not replaced in this file"),
                ("http://${PROM_HOST}:9090", "; variables of the environment are not replaced in this file"),
                ("http://{prometheus}", ""),
                ("{host}:9090", ""),
            )
        ),
        pytest.param(
            source('kind: prometheus, url: "https://p", tls: {ca_file: "-----BEGIN CERTIFICATE-----"}'),
            "sources.it.tls.ca_file: expected the path of a file, got its content, which does not belong here; mount",
            id="a certificate for its file",
        ),
        *(
            pytest.param(
                source(f'kind: prometheus, url: "https://p", bearer_token_file: "{file}"'),
                "sources.it.bearer_token_file: expected the path of a file; ~ and variables of the environment are not",
                id=file,
            )
            for file in ("${TOKEN_FILE}", "~/token")
        ),
        pytest.param(
            source('kind: prometheus, url: "http://p/base/api/v1/"'),
            "sources.it.url: expected http://p/base without /api/v1, which the adapter adds, got 'http://p/base/api/v1/'",
            id="the path of the API",
        ),
        pytest.param(
            source('kind: prometheus, url: "http://p/api/v1/query"'),
            "sources.it.url: expected http://p without /api/v1",
            id="the path of a query",
        ),
        pytest.param(
            source('kind: prometheus, url: "http://p:9090/graph"'),
            "sources.it.url: expected http://p:9090 without /graph, which is a page, got 'http://p:9090/graph'",
            id="the address of a page",
        ),
        pytest.param(
            source('kind: prometheus, url: "http://p:9090/query?g0.expr=up&g0.tab=1"'),
            "sources.it.url: expected http://p:9090 without /query, which is a page, got 'http://p:9090/query'",
            id="the address of a query's page",
        ),
        pytest.param(
            source('kind: prometheus, url: "http://p?dedup=true"'),
            "sources.it.url: expected an address without ? and #, got one with them; put them under `parameters`",
            id="a query string",
        ),
        pytest.param(
            source("kind: trace"), "sources.it: expected file or url, got neither", id="a trace without place"
        ),
        pytest.param(
            source('kind: trace, file: a, url: "http://a"'),
            "sources.it.url: excludes file",
            id="a trace twice",
        ),
        pytest.param(
            source('kind: pravega, url: "http://a", prometheus: prm'),
            "sources.it.prometheus: expected one of prom, got 'prm'; did you mean prom?",
            id="pravega's rates from an unknown source",
        ),
        pytest.param(
            source('kind: pravega, url: "http://a", prometheus: kafka'),
            "sources.it.prometheus: expected a source of kind prometheus, got kafka of kind kafka",
            id="pravega's rates from kafka",
        ),
        pytest.param(prometheus("deadline_s: .inf"), "sources.it.deadline_s: expected a finite number", id="infinity"),
        pytest.param(
            prometheus("deadline_s: 15"),
            "sources.it.deadline_s: expected less than timing.tick_s = 15, got 15",
            id="a deadline of a tick",
        ),
        pytest.param(
            whole("timing: {tick_s: 5}"),
            "sources.kafka.deadline_s: expected less than timing.tick_s = 5, got 5.0 (default); a late source must not "
            "delay the tick, so write at most 4, or raise the tick",
            id="a tick as short as the default deadline",
        ),
        pytest.param(
            prometheus("bearer_token_file: a, basic: {username: a, password_file: b}"),
            "sources.it.basic: excludes bearer_token_file",
            id="two ways to authenticate",
        ),
        pytest.param(
            prometheus("tls: {cert_file: a}"), "sources.it.tls.key_file: is required with cert_file", id="no key"
        ),
        pytest.param(
            prometheus("tls: {ca_file: a}"),
            "sources.it.tls: has no effect with http://; expected a url with https://",
            id="certificates of a Prometheus without TLS",
        ),
        pytest.param(
            source('kind: pravega, url: "http://p", tls: {ca_file: a}'),
            "sources.it.tls: has no effect with http://; expected a url with https://",
            id="certificates of a Pravega controller without TLS",
        ),
        pytest.param(
            prometheus("headers: {Authorization: abc}"),
            "sources.it.headers.Authorization: may not carry a secret in this file; use bearer_token_file or basic",
            id="an authorization header",
        ),
        pytest.param(
            prometheus("headers: {X Scope: abc}"),
            "sources.it.headers[\"X Scope\"]: expected the name of a header such as X-Scope-OrgID, got 'X Scope'",
            id="a header with a blank in its name",
        ),
        pytest.param(
            prometheus("headers: {X-Scope-OrgID: Zürich}"),
            "sources.it.headers.X-Scope-OrgID: expected one line of ASCII characters, got 'Zürich'",
            id="a header with an umlaut in its value",
        ),
        pytest.param(
            prometheus('headers: {X-Scope-OrgID: "a\\nb"}'),
            "sources.it.headers.X-Scope-OrgID: expected one line of ASCII characters, got 'a\\nb'",
            id="a header of two lines",
        ),
        pytest.param(
            kafka("properties: {sasl.password: abc}"),
            'sources.it.properties["sasl.password"]: may not carry a secret in this file; put it into the file that',
            id="a password",
        ),
        pytest.param(
            kafka("properties: {bootstrap.servers: abc}"),
            'sources.it.properties["bootstrap.servers"]: is set beside properties; use bootstrap_servers',
            id="brokers among the properties",
        ),
        pytest.param(
            kafka("properties: {enable.idempotence: true}"),
            'sources.it.properties["enable.idempotence"]: expected text, got true; write it in quotes',
            id="a property that is not text",
        ),
        pytest.param(
            source("kind: kafka, bootstrap_servers: [a, b]"),
            'expected text, got a list; an example is "kafka-0:9092,kafka-1:9092"',
            id="a list of brokers",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod",
            "c.yaml: expected a configuration with sources and pipeline, got a manifest of Kubernetes; "
            "check HPAs with --hpa FILE beside --config",
            id="a manifest",
        ),
        pytest.param(whole("pipeline_: 1"), "did you mean pipeline?", id="an underscore too many"),
        pytest.param(
            whole("serving: {key_file: a}"), "serving.cert_file: is required with key_file", id="no certificate"
        ),
        pytest.param(
            f"sources:{SOURCES}\npipeline: {{checkpoint: /c, token_file: /t}}",
            "pipeline.cert_file: is required with token_file: a token must not be sent without TLS",
            id="the pipeline's token without TLS",
        ),
        pytest.param(
            whole("serving: {port: 70000}"), "serving.port: expected at most 65535, got 70000", id="a high port"
        ),
        pytest.param(
            whole("serving: {metrics_port: 6443}"), "serving.metrics_port: expected another port", id="one port twice"
        ),
        pytest.param(whole("serving: {snapshot_url: a}"), "serving.snapshot_url: expected http://host", id="no url"),
        pytest.param(
            whole('serving: {snapshot_url: "HTTP://p:8443", snapshot_token_file: a}'),
            "serving.snapshot_url: expected https://host with snapshot_token_file: a token requires TLS",
            id="the snapshot's token without TLS",
        ),
        pytest.param(
            whole("serving: {service: backlog-adapter}"),
            "serving.service: expected the namespace and the name of a Service, as monitoring/backlog-adapter, got",
            id="a service without its namespace",
        ),
        pytest.param(
            whole("serving: {issuer: {lease: a, secret: s}}"),
            "serving.issuer.pipeline_secret: is required with secret: one CA signs both certificates",
            id="one certificate of two",
        ),
        pytest.param(
            whole("serving: {issuer: {lease: a, leaf_lifetime_s: 300}}"),
            "serving.issuer.leaf_lifetime_s: expected at least 6 * publish_s = 360, got 300",
            id="a certificate that expires while its CA is published",
        ),
        pytest.param(
            whole("serving: {issuer: {lease: a, ca_lifetime_s: 86400}}"),
            "serving.issuer.ca_lifetime_s: expected at least 3 * leaf_lifetime_s = 23328000, got 86400",
            id="a CA that expires before its certificates",
        ),
        pytest.param(
            whole("serving: {issuer: {lease: a, token_secret: t}, service: n/a}"),
            "serving.snapshot_token_file: is required with issuer",
            id="no file for the token",
        ),
        pytest.param(
            whole("serving: {issuer: {lease: a}}"),
            "serving.service: is required with issuer",
            id="no Service to issue for",
        ),
        pytest.param(
            whole("serving: {issuer: {lease: a, secret: s, pipeline_secret: p}, cert_file: a.crt, key_file: a.key}"),
            "serving.key_file: expected the path of cert_file with issuer: serve writes both into one file",
            id="two files for what changes at once",
        ),
        pytest.param(
            whole("serving: {access_log: everything}"),
            "serving.access_log: expected one of all, refusals, none, got 'everything'",
            id="an unknown access log",
        ),
        pytest.param(
            "sources: {k: {kind: kubernetes}}\npipeline: {checkpoint: c, memory: 1 GB}",
            "pipeline.memory: expected a size such as 1g or 1500m, got '1 GB'; write 1g (",
            id="a size in words",
        ),
        pytest.param(
            "sources: {k: {kind: kubernetes}}\npipeline: {checkpoint: c, memory: 4Gi}",
            "got '4Gi'; write 4g (",
            id="a size as a quantity of Kubernetes",
        ),
        pytest.param(
            "sources: {k: {kind: kubernetes}}\npipeline: {checkpoint: c, memory: 400m}",
            "pipeline.memory: expected at least 512m, which Spark needs to start, got '400m'",
            id="a heap with which Spark does not start",
        ),
        pytest.param(
            "sources: {k: {kind: kubernetes}}\npipeline: {checkpoint: c, cert_file: a}",
            "pipeline.key_file: is required with cert_file",
            id="a pipeline's certificate without its key",
        ),
    ],
)
def test_a_fault_of_sources_and_processes_is_one_sentence(text: str, sentence: str):
    assert sentence in refusal_of(text)


BROKERS = "sources.it.bootstrap_servers: expected host:port, separated by commas, with ports from 1 to 65535, got "


@pytest.mark.parametrize(
    ("servers", "given"),
    [
        ("http://localhost:9092", "'http://localhost:9092'; write localhost:9092 ("),
        ("https://kafka/", "'https://kafka/'; write the port too, such as kafka:9092 ("),
        ("localhost:99999", "'localhost:99999'"),
        ("a:1,b:0", "'b:0'"),
        ("a:port", "'a:port'"),
        ("  ", "'  '"),
        (",", "','"),
        ("a:1 b:2", "'a:1 b:2'"),
        ("a:1;b:2", "'a:1;b:2'"),
        ("::1:9092", "'::1:9092'"),
        ("kafka", "'kafka'; write the port too, such as kafka:9092 ("),
        ("a:1, SSL://b", "'SSL://b'; write the port too, such as SSL://b:9092 ("),
        ("[::1]", "'[::1]'; write the port too, such as [::1]:9092 ("),
        ("kafka:", "'kafka:' ("),
        ("SSL://me:hunter2@a:1", "a text with @ that is not shown; user and password do not belong here"),
    ],
)
def test_brokers_that_no_client_can_reach_are_refused(servers: str, given: str):
    assert BROKERS + given in refusal_of(source(f'kind: kafka, bootstrap_servers: "{servers}"'))


def test_the_api_of_another_system_may_be_the_path_to_prometheus():
    assert parse(source('kind: prometheus, url: "http://k8s/api/v1/namespaces/a/services/prom/proxy"'), "c.yaml")


@pytest.mark.parametrize(
    ("servers", "used"),
    [
        ("kafka_0:1", "kafka_0:1"),
        ("a.b-c:9092 , 10.0.0.1:9093,", "a.b-c:9092,10.0.0.1:9093"),
        ("[2001:db8::1]:9092,[::1]:9093", "[2001:db8::1]:9092,[::1]:9093"),
        ("PLAINTEXT://a:1,plaintext://b:2", "PLAINTEXT://a:1,plaintext://b:2"),
    ],
)
def test_brokers_are_addresses_as_librdkafka_accepts_them(servers: str, used: str):
    config = parse(source(f'kind: kafka, bootstrap_servers: "{servers}"'), "c.yaml")

    assert config.sources["it"].model_dump()["bootstrap_servers"] == used


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            reading("source: kafkaa"), "workloads[0].read[0].source: expected one of kafka,", id="unknown source"
        ),
        pytest.param(reading("group: a"), "workloads[0].read[0].source: is required", id="no source"),
        pytest.param(
            "workloads: [{name: orders, read: [{group: g}]}]", "read[0].source: is required: the name", id="no sources"
        ),
        pytest.param(
            'sources: {it: {kind: pravega, url: "http://a", prometheus: prom}}',
            "sources.it.prometheus: expected the name of a source of kind prometheus; add one to sources",
            id="no source with rates",
        ),
        pytest.param(reading("source: [a]"), "read[0].source: expected the name of a source, got a list", id="a list"),
        pytest.param(
            reading("source: k8s"), "k8s is of kind kubernetes, which is read for every workload", id="kubernetes"
        ),
        pytest.param(
            reading("source: prom, group: g, topics: [t]"),
            "read[0].source: prom is of kind prometheus, and this entry has settings of kind kafka (",
            id="settings of kafka with a prometheus source",
        ),
        pytest.param(
            reading("source: kafka, preset: flink, match: {job_name: a}"),
            "read[0].source: kafka is of kind kafka, and this entry has settings of kind prometheus (",
            id="settings of prometheus with a kafka source",
        ),
        pytest.param(reading("source: kafka, topics: [t]"), "workloads[0].read[0].group: is required", id="no group"),
        pytest.param(
            reading("source: kafka, group: g"),
            "read[0].topics: is required: Topics whose log end offsets count the appended records, such as [orders]. (",
            id="no setting of topics",
        ),
        pytest.param(
            whole("workloads: [{name: a, read: {source: sim}}]"),
            "read: expected a list, got a mapping; an example is [{source: kafka, group: orders, topics: [orders]}] (",
            id="one reading without its list",
        ),
        pytest.param(
            reading("source: kafka, group: g, topics: []"),
            "read[0].topics: expected at least one entry",
            id="no topics",
        ),
        pytest.param(
            reading("source: kafka, group: g, topic: t"),
            "read[0].topic: is not a setting here; did you mean topics?",
            id="topic",
        ),
        pytest.param(
            reading("source: kafka, group: g, topics: t"),
            "read[0].topics: expected a list, got 't'; an example is [orders, payments]",
            id="one topic as text",
        ),
        pytest.param(
            reading("source: prom"), "read[0]: expected a preset or signals, got neither", id="nothing to ask"
        ),
        pytest.param(
            reading("source: sim, group: g"),
            "read[0].source: sim is of kind trace, and this entry has settings of kind kafka (",
            id="a group of a trace",
        ),
        pytest.param(
            workload("namespace: Shop"), "workloads[0].namespace: expected at most 63 lower-case", id="upper case"
        ),
        pytest.param(
            whole("workloads: [{name: a b, read: [{source: sim}]}]"),
            "workloads[0].name: expected at most 63",
            id="a blank",
        ),
        pytest.param(
            whole(f"workloads: [{{name: {'a' * 64}, read: [{{source: sim}}]}}]"),
            "workloads[0].name: expected",
            id="64 letters",
        ),
        pytest.param(
            whole(
                "workloads: [{name: a, read: [{source: sim}]}, {name: a, namespace: default, read: [{source: sim}]}]"
            ),
            "workloads[1].name: default/a is already the name of workloads[0]",
            id="one workload twice",
        ),
        pytest.param(workload("labels: {workload: x}"), "labels.workload: is reserved", id="the label workload"),
        pytest.param(workload("labels: {stage: x}"), "labels.stage: is reserved", id="the label stage"),
        pytest.param(
            workload("labels: {-a: x}"), 'labels["-a"]: expected a label key', id="a label key with a dash first"
        ),
        pytest.param(workload("labels: {a: x y}"), "labels.a: expected at most 63", id="a label value with a blank"),
        pytest.param(
            workload("labels: {v: 1}"), "labels.v: expected text, got 1; write it in quotes", id="a number as label"
        ),
        pytest.param(
            workload("pause: {direction: upp}"), "direction: expected one of up, down, both, got 'upp'", id="upp"
        ),
        pytest.param(
            workload("pause: both"), "expected a mapping, got 'both'; an example is {direction: both}", id="pause: both"
        ),
        pytest.param(
            workload("pause: {direction: up, until: 2026-01-31}"),
            "pause.until: expected a time with its zone, got '2026-01-31'; write 2026-01-31T00:00:00Z, or an offset",
            id="a time without zone",
        ),
        pytest.param(
            workload("pause: {direction: up, until: tomorrow}"), "pause.until: expected a time such as", id="tomorrow"
        ),
        pytest.param(
            workload("pause: {direction: up, until: 2027-11-26T06:00+01:00}"),
            "got '2027-11-26T06:00+01:00'; write 2027-11-26T06:00:00+01:00 (c",
            id="a time without seconds",
        ),
        pytest.param(
            workload("pause: {direction: up, until: 2027-11-26 06:00:00Z}"),
            "got '2027-11-26 06:00:00Z'; write 2027-11-26T06:00:00+00:00 (c",
            id="a time as YAML writes it",
        ),
        pytest.param(fleet("source: kafak, groups: a"), "fleets[0].source: expected one of", id="a fleet of nowhere"),
        pytest.param(
            fleet("source: k8s"), "source: expected a source of kind prometheus or kafka, got k8s", id="of k8s"
        ),
        pytest.param(fleet("source: kafka"), "fleets[0].groups: is required", id="a fleet of kafka without groups"),
        pytest.param(
            fleet('source: kafka, groups: "("'), "groups: expected a regular expression, got '('", id="a bracket"
        ),
        pytest.param(
            fleet("source: kafka, groups: a, preset: flink"),
            "fleets[0].preset: is for sources of kind prometheus, and kafka is of kind kafka; remove it",
            id="a preset for kafka",
        ),
        pytest.param(
            fleet("source: prom, preset: flink, groups: a"),
            "fleets[0].groups: is for sources of kind kafka",
            id="groups",
        ),
        pytest.param(
            fleet("source: prom"), "fleets[0]: expected a preset or signals, got neither", id="nothing to ask for"
        ),
        pytest.param(
            fleet("source: prom, signals: {backlog_records: up}"),
            "fleets[0].workload_label: is required without a preset",
            id="own queries that name no workload",
        ),
        pytest.param(
            whole("fleets: [{name: a, source: kafka, groups: a}, {name: a, source: kafka, groups: b}]"),
            "fleets[1].name: a is already the name of fleets[0]",
            id="one fleet twice",
        ),
        pytest.param(
            whole("fleets: [{name: a, source: kafka, groups: a}, {name: b, source: kafka, groups: a}]"),
            "fleets[1].groups: fleets[0] finds the same groups; change groups or namespace, or remove a fleet",
            id="the groups of another fleet",
        ),
    ],
)
def test_a_fault_of_workloads_and_fleets_is_one_sentence(text: str, sentence: str):
    assert sentence in refusal_of(text)


def test_fleets_may_find_the_same_groups_in_other_namespaces() -> None:
    fleets = "fleets: [{name: a, source: kafka, groups: a}, {name: b, source: kafka, groups: a, namespace: two}]"
    assert len(parse(whole(fleets), "c.yaml").fleets) == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            workload("rules: {policy: dataflw}"),
            f"workloads[0].rules.policy: expected one of {', '.join(POLICIES)}, got 'dataflw'; did you mean dataflow?",
            id="a misspelt policy",
        ),
        pytest.param(
            workload("rules: {max_worker: 5}"),
            "rules.max_worker: is not a setting here; did you mean max_workers?",
            id="a key",
        ),
        pytest.param(
            workload("rules: {pause_up_until_s: 5}"),
            "rules.pause_up_until_s: is not a setting here; `backlog-adapter schema` lists the settings (",
            id="a hidden setting",
        ),
        pytest.param(
            "sources: {k: {kind: kafka, bootstrap_servers: 'a:9092'}}\npipeline: {checkpoint: c}\n"
            "workloads: [{name: w, read: [{source: k, group: g, topics: [orders, 'orders.*']}]}]",
            "workloads[0].read[0].topics[1]: expected the name of a topic, of letters, digits, '.', '_' and '-', got "
            "'orders.*' (",
            id="a pattern of topics",
        ),
        pytest.param(
            workload("backlog_time_target_s: 60"),
            "workloads[0].backlog_time_target_s: is a rule; move it below rules (",
            id="a rule beside rules",
        ),
        pytest.param(
            workload("maxReplicas: 5"),
            "workloads[0].maxReplicas: is not a setting here; maxReplicas of the HPA limits the size, as does "
            "rules.max_workers (",
            id="a field of an HPA",
        ),
        pytest.param(
            fleet("groups: 'report-.*', topics: [t]"),
            "fleets[0].topics: is not a setting here; only the `read` of a workload names topics",
            id="topics of a fleet",
        ),
        pytest.param(
            workload("rules: {lagThreshold: 50}"),
            "rules.lagThreshold: is not a setting here; drain sizes by time, not by records: set "
            "rules.backlog_time_target_s (",
            id="a parameter of KEDA",
        ),
        pytest.param(
            workload("rules: {pause: {direction: both}}"),
            "rules.pause: is no rule; move it out of rules, one level up (",
            id="a setting of the workload",
        ),
        pytest.param(
            workload("rules: {down_cpu_ratio: 1.5}"),
            "rules.down_cpu_ratio: expected at most 1, got 1.5 (c",
            id="a bound",
        ),
        pytest.param(
            workload("rules: {target_utilization_ratio: 80}"),
            "target_utilization_ratio: expected at most 1, got 80; write 0.8 for 80 % (",
            id="a percentage",
        ),
        pytest.param(whole("rules: {forecast_cap_ratio: 80}"), "expected at most 10, got 80 (c", id="a multiple"),
        pytest.param(
            whole("rules: {replay_s: 60000}"),
            "expected at most 3600, got 60000; if 60000 is in ms, write 60 (",
            id="ms",
        ),
        pytest.param(
            whole("rules: {replay_s: 4000000}"), "rules.replay_s: expected at most 3600, got 4000000 (", id="no ms"
        ),
        pytest.param(whole("rules: {rate_window_s: 0}"), "rules.rate_window_s: expected more than 0, got 0", id="zero"),
        pytest.param(
            workload("rules: {stale_after_s: 200}"),
            "workloads[0].rules.stale_after_s: expected stale_after_s <= error_after_s, "
            "got stale_after_s = 200.0 and error_after_s = 180.0 (default): worker counts would expire before",
            id="an own value over a default",
        ),
        pytest.param(
            workload("rules: {max_workers: 2}") + "rules: {min_workers: 5}",
            "workloads[0].rules.max_workers: expected min_workers <= max_workers, "
            "got min_workers = 5 and max_workers = 2: no size is allowed (c.yaml",
            id="an own maximum under the file's minimum",
        ),
        pytest.param(
            whole("rules: {error_after_s: 30}"),
            "expected stale_after_s <= error_after_s, got stale_after_s = 45.0",
            id="age",
        ),
        pytest.param(
            whole("rules: {up_cpu_ratio: 0.5}"),
            "expected down_cpu_ratio <= up_cpu_ratio, got down_cpu_ratio = 0.7",
            id="cpu",
        ),
        pytest.param(
            whole("rules: {up_backlog_time_s: 5}"),
            "expected short_backlog_time_s <= up_backlog_time_s",
            id="backlog times",
        ),
        pytest.param(
            whole("rules: {target_utilization_ratio: 0.95}"),
            "rules.target_utilization_ratio: expected target_utilization_ratio <= high_utilization_ratio, "
            "got target_utilization_ratio = 0.95 and high_utilization_ratio = 0.9 (default): a size at its target",
            id="a target over what a subtask may reach",
        ),
        pytest.param(
            workload("rules: {sized_utilization_ratio: 0.7, safe_utilization_ratio: 0.5}"),
            "workloads[0].rules.sized_utilization_ratio: expected sized_utilization_ratio <= safe_utilization_ratio, "
            "got sized_utilization_ratio = 0.7 and safe_utilization_ratio = 0.5: a new size would be scaled up at once",
            id="S4-27 over S4-10",
        ),
        pytest.param(
            whole("rules: {min_spare_workers: 101, max_workers: 100}"),
            "expected min_spare_workers <= max_workers, got min_spare_workers = 101 and max_workers = 100: the spare",
            id="more spare workers than workers",
        ),
        pytest.param(
            whole("rules: {significant_backlog_time_s: 5}"),
            "rules.significant_backlog_time_s: expected no_backlog_time_s <= significant_backlog_time_s",
            id="S4-10 under S4-12",
        ),
        pytest.param(
            whole("rules: {low_cpu_ratio: 0.9}"),
            "expected low_cpu_ratio <= target_utilization_ratio, got low_cpu_ratio = 0.9",
            id="an optional parameter that is set",
        ),
        pytest.param(
            workload("rules: {policy: drain, target_utilization_ratio: 0.15}"),
            "expected low_cpu_ratio <= target_utilization_ratio, got low_cpu_ratio = 0.2 (default) and",
            id="the default of the named policy",
        ),
        pytest.param(
            whole("timing: {tick_s: 60}"),
            "rules.rate_window_s: expected rate_window_s >= 2 * timing.tick_s, "
            "got rate_window_s = 60.0 (default) and timing.tick_s = 60",
            id="a tick too long for the default window",
        ),
        pytest.param(
            whole("timing: {tick_s: 4}\nrules: {rate_window_s: 600}"),
            "rules.rate_window_s: expected rate_window_s <= 120 * timing.tick_s, "
            "got rate_window_s = 600.0 and timing.tick_s = 4",
            id="a window of too many ticks",
        ),
        pytest.param(
            whole("rules: {stale_after_s: 10}"),
            "rules.stale_after_s: expected stale_after_s >= timing.tick_s",
            id="stale",
        ),
        pytest.param(
            whole("rules: {stale_after_s: 15, error_after_s: 20}"),
            "rules.error_after_s: expected error_after_s >= 2 * timing.tick_s",
            id="a number that expires before it can be late",
        ),
    ],
)
def test_a_fault_of_rules_is_one_sentence(text: str, sentence: str):
    assert sentence in refusal_of(text)


@pytest.mark.parametrize("own", ["low_cpu_ratio: 0.1", "policy: dataflow", "policy: drain, low_cpu_ratio: 0.1"])
def test_a_shared_rule_may_contradict_the_default_of_a_policy_that_no_workload_uses(own: str):
    shared = "rules: {target_utilization_ratio: 0.15}"
    parse(f"{workload(f'rules: {{{own}}}')}{shared}\n", "c.yaml")


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("rescale_pause_s: 1e3", "got '1e3', which YAML reads as text; write 1000, without quotes (c"),
        ("rescale_pause_s: 1e+3", "got '1e+3', which YAML reads as text; write 1000, without quotes (c"),
        ("worker_capacity_records_per_s: 1e12", "reads as text; write 1000000000000, without quotes (c"),
        ("max_workers: 1e12", "expected a whole number, got '1e12', which YAML reads as text (c"),
        ('warm_up_s: "60"', "got '60'; write 60, without quotes (c"),
        ('max_workers: "8"', "expected a whole number, got '8'; write 8, without quotes (c"),
        ("backlog_time_target_s: 1m", "got '1m'; write 60, the seconds without a unit (c"),
        ("backlog_time_target_s: 1.5 h", "got '1.5 h'; write 5400, the seconds without a unit (c"),
        ("target_utilization_ratio: 80%", "expected a number, got '80%'; write 0.8 for 80% (c"),
        ("target_utilization_ratio: 87.5 %", "got '87.5 %'; write 0.875 for 87.5 % (c"),
        ("forecast_cap_ratio: 150%", "expected a number, got '150%'; write 1.5 for 150% (c"),
        ("target_utilization_ratio: 150%", "expected a number, got '150%' (c"),
        ("tolerance_ratio: 100%", "expected a number, got '100%' (c"),
        ("warm_up_s: 2h", "expected a number, got '2h' (c"),
        ('max_workers: "0"', "expected a whole number, got '0' (c"),
        ('max_workers: "1.5"', "expected a whole number, got '1.5' (c"),
        ("max_workers: 80%", "got '80%' (c"),
        ("max_workers: 5m", "got '5m' (c"),
        ("rescale_pause_s: 1m30s", "got '1m30s'; write 90, the seconds without a unit (c"),
        ("rescale_pause_s: 1500ms", "got '1500ms'; write 1.5, the seconds without a unit (c"),
        ("rescale_pause_s: PT2M", "got 'PT2M'; write 120, the seconds without a unit (c"),
        ("stale_after_s: PT1H0.5S", "got 'PT1H0.5S'; write 3600.5, the seconds without a unit (c"),
        ("stale_after_s: P1D", "got 'P1D'; write 86400, the seconds without a unit (c"),
        ("stale_after_s: P2M", "got 'P2M' (c"),
        ("rescale_pause_s: 1m30", "got '1m30' (c"),
        ("rescale_pause_s: 30 60", "got '30 60' (c"),
        ("rescale_pause_s: 1m-30s", "got '1m-30s' (c"),
        ("target_utilization_ratio: 90%-5%", "got '90%-5%' (c"),
        ("target_utilization_ratio: '0,8'", "got '0,8'; write 0.8, with a point (c"),
        ("target_utilization_ratio: '8,0'", "got '8,0' (c"),
        ("max_workers: '1,000'", "got '1,000'; write 1000, without a comma (c"),
        ("worker_capacity_records_per_s: '1,000,000'", "got '1,000,000'; write 1000000, without a comma (c"),
        ("worker_capacity_records_per_s: '1,000'", "got '1,000' (c"),
        ("target_utilization_ratio: 800m", "got '800m'; write 0.8 for 800m (c"),
        ("worker_capacity_records_per_s: 4Gi", "got '4Gi'; write 4294967296 for 4Gi (c"),
        ("worker_capacity_records_per_s: 5k", "got '5k'; write 5000 for 5k (c"),
        ("worker_capacity_records_per_s: 5M", "got '5M'; write 5000000 for 5M (c"),
        ("worker_capacity_records_per_s: 5m", "got '5m' (c"),
        ("worker_capacity_records_per_s: 5h", "got '5h' (c"),
        ("warm_up_s: soon", "got 'soon' (c"),
        ("warm_up_s: 1e400", "got '1e400', which YAML reads as text (c"),
    ],
)
def test_a_text_that_looks_like_a_number_is_refused_with_the_number(setting: str, sentence: str):
    assert sentence in refusal_of(workload(f"rules: {{{setting}}}"))


@pytest.mark.parametrize(
    ("text", "path", "meant"),
    [
        (whole("workloads: [{nam: a, read: [{source: sim}]}]"), "workloads[0].nam", "name"),
        (source('type: kafka, bootstrap_servers: "a:9092"'), "sources.it.type", "kind"),
        (source('kind: kafka, brokers: "a:9092"'), "sources.it.brokers", "bootstrap_servers"),
        (reading("source: kafka, consumerGroup: g, topics: [t]"), "workloads[0].read[0].consumerGroup", "group"),
        (whole("workloads: [{name: a, red: [{source: sim}]}]"), "workloads[0].red", "read"),
        (reading("sourc: kafka, group: g, topics: [t]"), "workloads[0].read[0].sourc", "source"),
        (fleet("source: kafka, grups: a"), "fleets[0].grups", "groups"),
        (fleet("source: prom, preste: flink"), "fleets[0].preste", "preset"),
        (fleet("source: prom, signal: {workers: up}, workload_label: a"), "fleets[0].signal", "signals"),
        (fleet("source: prom, signals: {workers: up}, workload_labl: a"), "fleets[0].workload_labl", "workload_label"),
    ],
)
def test_a_required_setting_with_a_misspelt_name_is_one_fault(text: str, path: str, meant: str):
    with pytest.raises(ConfigError) as refused:
        parse(text, "c.yaml")

    [fault] = refused.value.faults
    assert fault.startswith(f"{path}: is not a setting here; did you mean {meant}? (c.yaml line ")


READ = """
workloads: [{name: a, read: [{source: kafka, group: g, topics: [t]}]}]
fleets: [{name: f, source: kafka, groups: g}]
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(f"source:{SOURCES}{READ}", "source: is not a setting here; did you mean sources?", id="misspelt"),
        pytest.param(READ, "sources: is required: The systems to read", id="absent"),
        pytest.param(f"sources: {{}}\n{READ}", "sources: expected at least one entry", id="empty"),
        pytest.param(
            f"sources:{SOURCES}rule: {{policy: segments}}\nworkloads: [{{name: a, read: [{{source: sim}}]}}]",
            "rule: is not a setting here; did you mean rules?",
            id="rules",
        ),
    ],
)
def test_a_part_with_a_misspelt_name_or_without_settings_is_one_fault(text: str, sentence: str):
    with pytest.raises(ConfigError) as refused:
        parse(f"pipeline: {{checkpoint: /c}}\n{text}", "c.yaml")

    [fault] = refused.value.faults
    assert fault.startswith(sentence)


@pytest.mark.parametrize(
    ("part", "entry"),
    [
        pytest.param("workload", "orders", id="a text for a workload"),
        pytest.param("workload", "{name: a, namespace: b}", id="a workload that reads nothing"),
        pytest.param("workload", "{name: a, namespace: b, read: }", id="a workload with an empty read"),
        pytest.param("fleet", "{groups: a}", id="a fleet without a source"),
        pytest.param("fleet", "{groups: a, source: [k]}", id="a fleet with a list of sources"),
    ],
)
def test_a_misspelt_part_is_one_fault_whatever_its_entries_are(part: str, entry: str):
    with pytest.raises(ConfigError) as refused:
        parse(f"sources: {{k: {{kind: kubernetes}}}}\npipeline: {{checkpoint: /c}}\n{part}:\n  - {entry}\n", "c.yaml")

    assert refused.value.faults == (f"{part}: is not a setting here; did you mean {part}s? (c.yaml line 3)",)


@pytest.mark.parametrize("own", ["source: prom, group: g, topics: [t]", "source: kafka, preset: flink, match: 3"])
def test_an_entry_for_another_kind_of_source_is_one_fault(own: str):
    with pytest.raises(ConfigError) as refused:
        parse(reading(own), "c.yaml")

    (fault,) = refused.value.faults
    assert fault.startswith("workloads[0].read[0].source: ")


def test_a_type_in_place_of_the_kind_hides_no_other_fault():
    faults = refusal_of(source('type: kafka, brokers: "a:9092"'))

    assert "sources.it.type: is not a setting here; did you mean kind?" in faults
    assert "sources.it.brokers: is not a setting here; did you mean bootstrap_servers?" in faults


def test_the_names_of_a_file_reach_no_terminal_unescaped():
    text = whole(
        'workloads: [{name: "o\\e[2J", read: [{source: "no\\u202e"}]}]', sources='\n  "s\\e[2J": {kind: trace, file: f}'
    )
    assert all(sentence.isprintable() for sentence in refusal_of(text).splitlines())
    assert r"expected one of kafka, prom, k8s, sim, s\x1b[2J, got 'no\u202e'" in refusal_of(text)


MATCHED = "rules_by_match: [{name: 'o.*', rules: {min_workers: 20}}]"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            whole("rules_by_match: [{rules: {min_workers: 2}}]"),
            "rules_by_match[0]: expected a namespace, a name or labels; rules of all workloads belong under rules",
            id="a match of everything",
        ),
        pytest.param(
            whole("rules_by_match: [{name: 'a(?=b)', rules: {min_workers: 2}}]"),
            "rules_by_match[0].name: expected a regular expression, got 'a(?=b)': look-around",
            id="a pattern that could backtrack",
        ),
        pytest.param(
            whole("rules_by_match: [{name: a}]"), "rules_by_match[0].rules: is required", id="a match without rules"
        ),
        pytest.param(
            workload("rules: {max_workers: 10}") + MATCHED,
            "workloads[0].rules.max_workers: expected min_workers <= max_workers, got min_workers = 20 and",
            id="a match and a workload's own rules",
        ),
        pytest.param(
            fleet("source: kafka, groups: 'r.*', rules: {max_workers: 10}") + MATCHED,
            "rules_by_match[0].rules.min_workers: expected min_workers <= max_workers, got min_workers = 20 and",
            id="a match and a fleet's rules",
        ),
    ],
)
def test_a_fault_of_matched_rules_is_one_sentence(text: str, sentence: str):
    assert sentence in refusal_of(text)


def test_a_fault_of_a_match_is_reported_once_and_not_for_each_workload():
    text = workload("rules: {quanta: none}") + "rules: {max_workers: 10}\n" + MATCHED
    assert refusal_of(text).count("expected min_workers <= max_workers") == 1


PERIOD = "from: 22:00, to: 06:00"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(
            whole("excluded_periods: {from: 22:00}"), "excluded_periods: expected a list, got a mapping", id="no list"
        ),
        pytest.param(
            workload("excluded_periods: [22:00]"), "excluded_periods[0]: expected a mapping, got '22:00'", id="a time"
        ),
        pytest.param(
            workload("excluded_periods: [{to: 06:00}]"),
            'workloads[0].excluded_periods[0].from: is required: Start, such as "22:00"',
            id="no start",
        ),
        pytest.param(
            workload("excluded_periods: [{begin: 22:00, to: 06:00}]"),
            "excluded_periods[0].begin: is not a setting here",
            id="a begin under another name",
        ),
        pytest.param(
            workload("excluded_periods: [{from: 24:00, to: 06:00}]"),
            "excluded_periods[0].from: expected a time of the day from 00:00 to 23:59, got '24:00'; midnight is 00:00",
            id="24 o'clock",
        ),
        pytest.param(
            workload("excluded_periods: [{from: 22:60, to: 06:00}]"), "from 00:00 to 23:59, got '22:60'", id="minute 60"
        ),
        pytest.param(workload("excluded_periods: [{from: 22, to: 6:00}]"), "23:59, got 22", id="an hour alone"),
        pytest.param(workload("excluded_periods: [{from: 10pm, to: 6:00}]"), "23:59, got '10pm'", id="afternoon"),
        pytest.param(workload("excluded_periods: [{from: 22:00:30, to: 6:00}]"), "got '22:00:30'", id="seconds"),
        pytest.param(
            workload(f"excluded_periods: [{{days: [monday], {PERIOD}}}]"),
            "excluded_periods[0].days[0]: expected one of mon, tue, wed, thu, fri, sat, sun, got 'monday'; did",
            id="a day in full",
        ),
        pytest.param(
            workload(f"excluded_periods: [{{days: [Saturday], {PERIOD}}}]"),
            "got 'Saturday'; did you mean sat?",
            id="a long day in full",
        ),
        pytest.param(
            workload(f"excluded_periods: [{{days: mon, {PERIOD}}}]"),
            "got 'mon'; an example is [sat, sun]",
            id="one day",
        ),
        pytest.param(
            workload(f"excluded_periods: [{{days: [], {PERIOD}}}]"), "days: expected at least one entry", id="no day"
        ),
        pytest.param(
            fleet(f"source: kafka, groups: a, excluded_periods: [{{zone: Europe/Berln, {PERIOD}}}]"),
            "fleets[0].excluded_periods[0].zone: expected a time zone such as UTC or Europe/Berlin, "
            "got 'Europe/Berln'; did you mean Europe/Berlin?",
            id="a misspelt zone",
        ),
        *(
            pytest.param(
                fleet(f"source: kafka, groups: a, excluded_periods: [{{zone: {zone}, {PERIOD}}}]"),
                f"expected a time zone such as UTC or Europe/Berlin, got '{zone}'; a region knows its daylight "
                "saving time, an abbreviation or offset does not (c.yaml",
                id=f"{zone} is no region, and another one that resembles it would be wrong",
            )
            for zone in ("CEST", "BST", "UTC+2", "GMT+1", "Etc/GMT+20")
        ),
        pytest.param(
            workload(f"excluded_periods: [{{zone: Europe, {PERIOD}}}]"), "expected a time zone such as", id="a folder"
        ),
        pytest.param(
            workload(f"excluded_periods: [{{zone: ../etc/passwd, {PERIOD}}}]"), "expected a time zone", id="a path"
        ),
        pytest.param(
            workload(f"excluded_periods: [{{zone: +02:00, {PERIOD}}}]"), "expected a time zone", id="an offset"
        ),
        pytest.param(
            whole("expected: [{from: 2026-11-27T18:00:00Z, to: 2026-11-27T18:00:00Z, times: 2}]"),
            "expected[0].to: expected a time after from = 2026-11-27T18:00:00+00:00, got 2026-11-27T18:00:00+00:00",
            id="an event without length",
        ),
        pytest.param(
            workload("expected: [{from: 2026-11-27T18:00:00Z, to: 2026-11-27T19:00:00Z, times: 0.5}]"),
            "workloads[0].expected[0].times: expected more than 1, got 0.5",
            id="an event with less input",
        ),
        pytest.param(
            whole("expected: [{from: 2026-11-27T18:00:00Z, to: 2026-11-27T19:00:00Z, times: '1.5'}]"),
            "expected[0].times: expected a number, got '1.5'; write 1.5, without quotes (c",
            id="a number in quotes",
        ),
        pytest.param(
            workload("expected: [{from: 2026-11-27T18:00:00Z, to: 2026-11-27T19:00:00Z, times: 150 %}]"),
            "times: expected a number, got '150 %'; write 1.5 for 150 % (c",
            id="a percentage",
        ),
        pytest.param(workload("failover: 1"), "workloads[0].failover: expected true or false, got 1", id="a number"),
        pytest.param(whole("failover: 'on'"), "failover: expected true or false, got 'on'", id="on, in quotes"),
    ],
)
def test_a_fault_of_periods_and_failover_is_one_sentence(text: str, sentence: str):
    assert sentence in refusal_of(text)


def test_a_fault_of_the_files_rules_is_reported_once_and_not_for_each_workload():
    error = refusal_of(workload("rules: {quanta: none}") + "rules: {min_workers: 5, max_workers: 2}")

    assert error.count("expected min_workers <= max_workers") == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(kafka("properties: {sasl.password: hunter2}"), id="a password of Kafka"),
        pytest.param(kafka("properties: {ssl.key.pem: hunter2}"), id="a key of Kafka"),
        pytest.param(kafka("properties: {sasl.oauthbearer.client.secret: hunter2}"), id="a client secret of Kafka"),
        pytest.param(
            kafka("properties: {sasl.oauthbearer.assertion.private.key.passphrase: hunter2}"), id="a passphrase"
        ),
        pytest.param(kafka("properties: {sasl.oauthbearer.config: hunter2}"), id="what may hold a secret of Kafka"),
        pytest.param(prometheus("headers: {X-Auth-Key: hunter2}"), id="a key in a header of another name"),
        pytest.param(kafka("properties: {sasl.password: [hunter2]}"), id="a password of the wrong type"),
        pytest.param(prometheus("headers: {X-Api-Key: hunter2}"), id="a key in a header"),
        pytest.param(prometheus("basic: {username: me, password: hunter2}"), id="a password where its file belongs"),
        pytest.param(source('kind: prometheus, url: "http://me:hunter2@prom"'), id="a password in a URL"),
        pytest.param(source('kind: prometheus, url: "me:hunter2@prom"'), id="a password in what is no URL"),
    ],
)
def test_a_secret_in_the_file_is_refused_and_not_repeated(text: str):
    assert "hunter2" not in refusal_of(text)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.username",
        "ssl.ca.location",
        "ssl.key.location",
        "ssl.certificate.pem",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.metadata.authentication.type",
    ],
)
def test_a_property_without_a_secret_is_passed_through(name: str):
    sound = parse(kafka(f"properties: {{{name}: x}}"), "c.yaml")

    assert sound.sources["it"].properties == {name: "x"}
