"""Certificates and a token that the servers issue themselves, kept in Secrets of the cluster."""
