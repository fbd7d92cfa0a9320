"""A certificate authority of the tests' own, and a certificate it signed for a server of this machine."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write_certificates(folder: Path) -> tuple[Path, Path]:
    """Write `ca.pem`, which clients trust, and `server.pem`, the private key and certificates of localhost and 127.0.0.1; returns both paths."""
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca_name = _name("Sluice test authority")
    ca = _sign(_describe(ca_name, ca_name, ca_key, x509.BasicConstraints(ca=True, path_length=0)), ca_key)
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = _sign(_describe(_name("localhost"), ca_name, key, x509.BasicConstraints(ca=False, path_length=None)).add_extension(hosts, critical=False), ca_key)
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    ca_file, server_file = folder / "ca.pem", folder / "server.pem"
    ca_file.write_bytes(_pem(ca))
    server_file.touch(mode=0o600)
    server_file.write_bytes(private + _pem(certificate) + _pem(ca))
    return ca_file, server_file


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _describe(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, constraints: x509.BasicConstraints) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key()).serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=2)).add_extension(constraints, critical=True))


def _sign(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    return builder.sign(key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
