"""Building the container images: what they leave out, and what they contain."""
