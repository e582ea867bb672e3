"""The parts that requests are put together from: those that mean something, and those that look as if."""

TEMPLATES = (
    *["/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/required_workers"] * 3,
    *["/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/{}"] * 2,
    *["/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/deployments.apps/{}/required_workers"] * 2,
    *["/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/pods/{}/utilization"] * 2,
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/{}/{}",
    "/apis/external.metrics.k8s.io/{}/{}/{}",
    "/apis/custom.metrics.k8s.io/v1beta1/namespaces/{}/{}/{}/{}",
    "/apis/custom.metrics.k8s.io/v1beta1/namespaces/{}/metrics/{}",
    "/apis/custom.metrics.k8s.io/v1beta2/{}/{}/{}",
    *("/apis/{}/{}/{}", "/apis/{}/{}", "/apis/{}", "/apis", "/{}/{}", "/{}"),
    *("/apis/{}/{}/watch", "/apis/{}/{}/proxy/{}", "/api/{}/watch", "/api/{}/{}"),
    *("/openapi/{}/{}/{}/{}", "/openapi/v3/apis/external.metrics.k8s.io/v1beta1", "/openapi/v2", "/openapi/v3"),
)
NAMES = (
    *("apis", "api", "v1", "v1beta1", "v1beta2", "v1beta9", "external.metrics.k8s.io", "custom.metrics.k8s.io", "apps"),
    *("namespaces", "shop", "web", "nowhere", "pods", "deployments.apps", "metrics", "proxy", "watch", "status"),
    *("required_workers", "backlog_time_seconds", "backlog_growth", "backlog_growth_signed", "utilization", "lag"),
    *("reqired_workers", "orders", "payments", "orders-1", "*", "finalize", "openapi", "v2", "v3", "version", "slis"),
    *("healthz", "livez", "readyz", "ping", "first-snapshot", "index.html", ""),
)
STRANGE_NAMES = (
    *("..", ".", "%2F", "%2f..%2f", "%2e%2e", "%00", "%0A", "%0d%0aSet-Cookie:a", "%", "%z", "%zz", "%ff", "%C3%A9"),
    *("%ed%a0%80", "%e2%80%a8", "%C2%85", "%EF%BB%BF", "%7F", "%1B[31m", "%5C", "%25", "a%20b", "a:b", "a|b", "<b>"),
    *("&amp;", "\"'", "{}", "~", "null", "yes", "1e3", "0x1f", "2026-01-02", "=", "- a", "?", "#", ";a=b", "@", "\\"),
    *("`", "[1]", "!x"),
)
PARAMETERS = (
    *("labelSelector", "labelSelector", "labelSelector", "metricLabelSelector", "fieldSelector", "limit", "timeout"),
    *("timeoutSeconds", "watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "continue", "pretty"),
    *("verbose", "exclude", "hash", "allowWatchBookmarks", "é", ""),
)
SELECTORS = (
    *("workload", "stage", "team", "nope", "in", "notin", "=", "==", "!=", "!", "<", ">", "(", ")", "\t", " "),
    *("orders", "payments", "red", "parse", "a/b", "A.b/c", "-a", "9223372036854775808", "-1", "\0", "\x85", "é"),
    *("\u2028", "x" * 64, "workload=orders", "team in (red,blue)", ",", ",", ",", ","),
)
FIELDS = (
    *("metadata.name", "metadata.namespace", "spec", "=", "==", "!=", "\\", "orders", "*", "..", "%", "é", "\n"),
    *("metadata.name=orders", ",", ",", ","),
)
NUMBERS = (
    *("0", "1", "-1", "+1", "٣", "9223372036854775807", "9223372036854775808", "1e3", " 1", "1_0", "", "9" * 5000),
)
DURATIONS = (
    *("1", "0", ".5", "-", "+", "ns", "us", "µs", "ms", "s", "m", "h", "d", "1h", "9223372036854775807", "1e9", "."),
    "é",
)
WORDS = ("true", "false", "1", "0", "Exact", "NotOlderThan", "banana", "ping", "0x", "None", "no")
ACCEPTS = (
    *("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "text/html"),
    *("*/*", "application/*", "*/json", "*", "/", "//", "application/json/x", "Application/JSON", " ", "\t", "é"),
    *(";q=0", ";q=1e999", ";q=nan", ";q= 1", ";q=", ";g=", ";v=v1", ";stream=watch", ";stream=no", ";sv=v1"),
    *(";pretty=1", ";charset=utf-8", ";profile=nopeer", ";;", ";=", "==", ",", ",", ",", ",", ",", ","),
    *(";as=Table", ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", ";as=APIGroupDiscoveryList;v=v2"),
    *(";as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1", ";as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io"),
)
ENCODINGS = ("gzip", "identity", "*", ";q=0", " ", ",", "br")
USERS = (
    *("alice", "bob", "boom", "sarboom", "system:kube-aggregator", "system:anonymous", "system:masters", "é", "a b"),
    *("system:authenticated", "system:unauthenticated", "system:serviceaccount::", "", " ", "%2F", "%zz"),
    "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
)
TOKENS = (
    *("Bearer", "bearer", "Basic", "good", "boom", "bad", "sarboom", " ", "  ", "\t", "é", "x", "Bearer good"),
    "Bearer bad",
)
SUBPROTOCOLS = (
    *("base64url.bearer.authorization.k8s.io.", "base64url.bearer.authorization.k8s.io.Z29vZA", "Z29vZA", "Z29v"),
    *("é", "=", "chat", " ", "base64.channel.k8s.io", ",", ",", ",", ","),
)
TAGS = ("*", "W/", '"abc"', " ", '"', 'W/"abc"', "é", ",", ",")
PROGRAMS = ("curl/8.0", "Wget", "Mozilla/5.0 (X11)", "kubectl/v1.36", "backlog-adapter/1", "Go-http-client/1.1", "é")
