"""A server on a port: TLS, HTTP and what one caller may cost the others."""
