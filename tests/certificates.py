"""A certificate authority of the tests' own, and what it signed for a server and for a client."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KEY_PASSWORD = "only-for-tests"


class Certificates(NamedTuple):
    """PEM files. `server`: key and chain in one; `client_key`: under the password KEY_PASSWORD."""

    authority: Path
    server: Path
    client: Path
    client_key: Path


def write_certificates(folder: Path) -> Certificates:
    """Write what clients trust, what a server on this machine shows, and what a client shows.

    The server's certificate is for localhost and 127.0.0.1; each has its private key beside it.
    """
    ca_key, server_key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    ca_name, leaf = (
        _name("Sluice test authority"),
        x509.BasicConstraints(ca=False, path_length=None),
    )
    ca = _sign(
        _describe(ca_name, ca_name, ca_key, x509.BasicConstraints(ca=True, path_length=0)), ca_key
    )
    hosts = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    server = _sign(
        _describe(_name("localhost"), ca_name, server_key, leaf).add_extension(
            hosts, critical=False
        ),
        ca_key,
    )
    client = _sign(_describe(_name("a client"), ca_name, client_key, leaf), ca_key)
    files = Certificates(
        folder / "ca.pem", folder / "server.pem", folder / "client.pem", folder / "client.key"
    )
    files.authority.write_bytes(_pem(ca))
    files.client.write_bytes(_pem(client) + _pem(ca))
    for file, text in (
        (files.server, _private(server_key) + _pem(server) + _pem(ca)),
        (files.client_key, _private(client_key, KEY_PASSWORD)),
    ):
        file.touch(mode=0o600)
        file.write_bytes(text)
    return files


def _private(key: ec.EllipticCurvePrivateKey, password: str = "") -> bytes:
    hidden = (
        serialization.BestAvailableEncryption(password.encode())
        if password
        else serialization.NoEncryption()
    )
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _describe(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    constraints: x509.BasicConstraints,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(constraints, critical=True)
    )


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
