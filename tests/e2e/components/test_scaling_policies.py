"""The scaling policies of streams on a real Pravega controller."""

import httpx
import pytest
from parts.pravega import Pravega

from adapter.config import PravegaSource
from adapter.errors import SourceError
from adapter.sources.pravega import PravegaReader


def test_the_policy_of_each_kind_of_stream_is_read(pravega: Pravega) -> None:
    pravega.create_stream("policies", "fixed", 4)
    pravega.create_stream("policies", "by-events", 1, events_per_s=100)
    reader = PravegaReader("pravega", PravegaSource(kind="pravega", url=pravega.url), ())
    by_bytes = {"type": "BY_RATE_IN_KBYTES_PER_SEC", "targetRate": 512, "scaleFactor": 3, "minSegments": 2}
    body = {"streamName": "by-bytes", "scalingPolicy": by_bytes}
    assert httpx.post(f"{pravega.url}/v1/scopes/policies/streams", json=body, timeout=60).status_code == 201
    assert reader.scaling_policy("policies", "fixed") == "fixed, 4 segments"
    by_rate = "by rate, target {} a segment, factor {}, at least {}"
    assert reader.scaling_policy("policies", "by-events") == by_rate.format("100 events/s", 2, "1 segment")
    assert reader.scaling_policy("policies", "by-bytes") == by_rate.format("512 KB/s", 3, "2 segments")
    with pytest.raises(SourceError, match=r"stream policies/gone of .*: it does not exist"):
        reader.scaling_policy("policies", "gone")
    reader.close()
