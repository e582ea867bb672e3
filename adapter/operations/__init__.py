"""Commands that query a running adapter."""
