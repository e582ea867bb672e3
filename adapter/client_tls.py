"""The TLS context of a client."""

import ssl


def client_context(ca_file: str | None) -> ssl.SSLContext:
    """A context that trusts the certificates of a file, or the system's, as programs in Go do.

    From Python 3.13 on, the default context refuses a CA without a key identifier or keyUsage: the cluster CA of some
    EKS clusters, and every CA of `openssl req -x509`. Before, it refuses an intermediate CA without its root.
    Raises OSError.
    """
    context = ssl.create_default_context(cafile=ca_file)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
