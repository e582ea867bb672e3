"""Another metrics adapter: a server on the Go library, with metrics of its own (bench/goserver)."""

from parts.controlplane import ControlPlane
from parts.process import HOST, Process, free_port, tools


class GoServer(Process):
    """Takes the cluster's word for who may ask; nobody listens before it is started. url: where it answers then.

    Its certificate is of the CA that every pod knows.
    """

    program = tools() / "goserver" / "server"

    def __init__(self, plane: ControlPlane) -> None:
        port = free_port()
        self.url = f"https://{HOST}:{port}"
        certificate, key = plane.serving_certificate("goserver")
        kubeconfig = plane.admin.kubeconfig
        options = [
            f"--bind-address={HOST}", f"--secure-port={port}", f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}", f"--lister-kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
        ]  # fmt: skip
        super().__init__("goserver", [self.program, *options], plane.folder)
