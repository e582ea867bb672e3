"""The start of a replica that issues."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from adapter.apiserver.cluster_api import ClusterApi
from adapter.config import Issuer, Serving
from adapter.errors import SetupError
from adapter.issuer.start import start_issuer
from adapter.serving.metric_api import CUSTOM, CUSTOM_ITEMS, EXTERNAL, EXTERNAL_VERSION


def test_the_apis_are_all_that_are_served_unless_the_settings_name_some() -> None:
    served = {f"{EXTERNAL_VERSION}.{EXTERNAL}", *(f"{version}.{CUSTOM}" for version in CUSTOM_ITEMS)}
    assert set(Serving().api_services) == served


def test_a_certificate_that_cannot_be_written_is_named_with_the_fix(tmp_path: Path) -> None:
    folder = tmp_path / "tls"
    folder.write_text("a file")
    file, ca = str(folder / "tls.pem"), str(tmp_path / "ca.crt")
    issuer = Issuer(lease="adapter", secret="tls", pipeline_secret="pipeline-tls")
    settings = Serving(
        cert_file=file,
        key_file=file,
        snapshot_url="https://pipeline",
        snapshot_ca_file=ca,
        service="shop/adapter",
        issuer=issuer,
    )
    with ExitStack() as stack, pytest.raises(SetupError) as raised:
        start_issuer(settings, ClusterApi(None), stack)
    expected = f"serving.cert_file: {file} cannot be written: File exists; mount a writable volume at {folder}"
    assert str(raised.value) == expected
