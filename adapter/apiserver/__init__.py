"""An aggregated API server: TLS, HTTP, authentication, authorization. It knows nothing of streaming jobs."""
