"""The names of the product's images on the node: tests/e2e/tools/images.sh builds them."""

from adapter import __version__

SERVE = f"localhost/backlog-adapter-serve:{__version__}"
PIPELINE = f"localhost/backlog-adapter-pipeline:{__version__}"
# The chart's values for them. A name without a registry would mean a public one.
VALUES = {"images": {"serve": SERVE.rpartition(":")[0], "pipeline": PIPELINE.rpartition(":")[0], "tag": __version__}}
