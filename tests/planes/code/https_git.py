"""A git server that speaks HTTPS on this machine, under any name."""

import datetime
import ipaddress
import os
import ssl
import subprocess
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

BACKEND_TIMEOUT_S = 60
MOVED = "/moved"
"""What begins so is redirected to the same path without it."""


@dataclass(frozen=True)
class GitServer:
    """A server under way: its port, the certificate that makes it good, and the paths that it was asked for."""

    port: int
    certificate: Path
    asked: Sequence[str] = field(default_factory=list[str])


@contextmanager
def serving(root: Path, folder: Path, names: Sequence[str]) -> Generator[GitServer]:
    """Serve the repositories in `root` under these names; the certificate is written to `folder`."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    _certify(names, certificate, key)
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, root, asked))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield GitServer(int(server.server_address[1]), certificate, asked)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Hands requests to git's own program for web servers."""

    def __init__(self, root: Path, asked: list[str], *about: object) -> None:
        self._root, self._asked = root, asked
        super().__init__(*about)  # pyright: ignore[reportArgumentType]  # a request, an address and a server

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self._asked.append(path)
        if path.startswith(MOVED):
            self.send_response(301)
            self.send_header("Location", self.path.removeprefix(MOVED))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        done = subprocess.run(
            ["git", "http-backend"],
            input=sent,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self._root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(sent)),
            },
            stdout=subprocess.PIPE,
            check=False,
            timeout=BACKEND_TIMEOUT_S,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base's name
        """Say nothing."""


def _certify(names: Sequence[str], certificate: Path, key: Path) -> None:
    secret = ec.generate_private_key(ec.SECP256R1())
    person = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(person)
        .issuer_name(person)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(secret, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key.write_bytes(
        secret.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
