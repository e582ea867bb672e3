"""Print the decisions of the policy `pairs` as JSON. It runs in a copy of the program that has the policy."""

import json
import sys

from builders import book, counts, job, last, tick

from adapter import config
from adapter.core.messages import sentence
from adapter.errors import ConfigError

FILE = """
sources: {{kafka: {{kind: kafka, bootstrap_servers: "a:9092"}}}}
workloads: [{{name: orders, read: [{{source: kafka, group: orders, topics: [orders]}}], rules: {{policy: {}}}}}]
pipeline: {{checkpoint: /tmp/checkpoint}}
"""


def main() -> None:
    """One decision of `pairs`, one of a policy that lacks its signals, one good and one misspelt configuration."""
    ticks = [tick(at_s, job(**counts(4), partitions=16)) for at_s in range(0, 301, 15)]
    decision = last(ticks, book(policy="pairs"))
    try:
        config.parse(FILE.format("pears"), "c.yaml")
    except ConfigError as refused:
        faults = refused.faults
    found = {
        "required_workers": decision.required_workers,
        "sentence": sentence(decision),
        "advice": sentence(last(ticks, book(policy="drain"))),
        "configured": config.parse(FILE.format("pairs"), "c.yaml").workloads[0].rules,
        "misspelt": faults,
    }
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
