"""What a Kafka cluster's fields, or its Airflow connection, mean to a client: Spark's (Java) and
the probe's (librdkafka)."""

import os
from pathlib import Path

from pydantic import ValidationError

from ..errors import SpecError
from .connection import Connection, connection_variable, read_connection
from .kafka_cluster import KafkaCluster, Security

_LIBRDKAFKA = {
    "protocol": "security.protocol",
    "mechanism": "sasl.mechanism",
    "username": "sasl.username",
    "password": "sasl.password",
    "ca_file": "ssl.ca.location",
    "certificate_file": "ssl.certificate.location",
    "key_file": "ssl.key.location",
    "key_password": "ssl.key.password",
}
"""Field of Security -> setting of librdkafka, which is what Airflow's Kafka connections hold."""

_LOGIN = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
}


def resolve_cluster(cluster: KafkaCluster) -> tuple[str, Security | None]:
    """Servers, and how to reach them (None: plain text, nobody asks who it is); what the cluster's
    own fields say wins over its connection.

    Raises SpecError when the connection is absent or says something that cannot be carried out.
    """
    if cluster.connection is None:
        return cluster.servers or "", cluster.security
    connection = read_connection(cluster.connection)
    where = f"connection {cluster.connection} ({connection_variable(cluster.connection)})"
    servers = (
        cluster.servers or _text(connection.extra.get("bootstrap.servers")) or _host(connection)
    )
    if not servers:
        raise SpecError(
            "the connection names no brokers",
            where=where,
            do='Give it `{"bootstrap.servers": "host:port"}` in Extra, or a host',
        )
    own = cluster.security.model_dump(exclude_unset=True) if cluster.security else {}
    fields = _security_fields(connection, where) | own
    try:
        return servers, Security(**fields) if fields else None
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, p['loc']))} {p['msg'].removeprefix('Value error, ')}".strip()
            for p in error.errors(include_input=False)
        )
        raise SpecError(
            f"the connection does not say how to reach the brokers: {problems}",
            where=where,
            do="Mend its Extra",
        ) from None  # its input is secret


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _host(connection: Connection) -> str:
    """`host:port` of the connection's own fields; a host field may hold a whole list."""
    host = connection.host
    return (
        host
        if not host or "," in host or host.rpartition(":")[2].isdigit()
        else f"{host}:{connection.port or 9092}"
    )


def _security_fields(connection: Connection, where: str) -> dict[str, str]:
    """Fields of Security that a connection gives.

    A login without a protocol does not travel in plain text: Security's own default is SASL_SSL.
    """
    extra = {
        name.replace("sasl.mechanisms", "sasl.mechanism"): _text(value)
        for name, value in connection.extra.items()
    }
    unknown = sorted(
        name
        for name in extra
        if name.startswith(("security.", "sasl.", "ssl.")) and name not in _LIBRDKAFKA.values()
    )
    if unknown:
        raise SpecError(
            "the connection asks for something that no client here can do",
            where=where,
            value=", ".join(unknown),
            do=f"Leave it out; Extra may say {', '.join(_LIBRDKAFKA.values())}",
        )
    found = {field: extra[name] for field, name in _LIBRDKAFKA.items() if extra.get(name)}
    found |= {field: found[field].upper() for field in ("protocol", "mechanism") if field in found}
    if not found.get("protocol", "SASL").startswith("SASL"):
        return found
    login = {"username": connection.login, "password": connection.password}
    found = {field: value for field, value in login.items() if value} | found
    tls_alone = found and not {"protocol", "mechanism", "username", "password"} & set(found)
    return found | {"protocol": "SSL"} if tls_alone else found


def client_config(cluster: KafkaCluster) -> dict[str, str]:
    """Settings of a librdkafka client.

    They hold secrets: not for a log. Raises SpecError for a file that is not there.
    """
    servers, security = resolve_cluster(cluster)
    if security is None:
        return {"bootstrap.servers": servers}
    wanted = ["protocol"]
    wanted += ["mechanism", "username", "password"] if security.protocol.startswith("SASL") else []
    files = ["ca_file", "certificate_file", "key_file"] if security.protocol.endswith("SSL") else []
    found = {field: getattr(security, field) for field in wanted}
    found |= {
        field: str(_check_file(field, getattr(security, field)))
        for field in files
        if getattr(security, field)
    }
    if "key_file" in found and security.key_password:
        found["key_password"] = security.key_password
    return {"bootstrap.servers": servers} | {
        _LIBRDKAFKA[field]: value for field, value in found.items()
    }


def spark_options(cluster: KafkaCluster) -> dict[str, str]:
    """Options of Spark's Kafka source and sink.

    They hold secrets, and files as text, so that executors elsewhere need none.

    Raises SpecError for a file that is not there or not what Java reads.
    """
    servers, security = resolve_cluster(cluster)
    found = {"bootstrap.servers": servers}
    if security is not None:
        found["security.protocol"] = security.protocol
        found |= _sasl_options(security) if security.protocol.startswith("SASL") else {}
        found |= _tls_options(security) if security.protocol.endswith("SSL") else {}
    return {f"kafka.{name}": value for name, value in found.items()}


def _sasl_options(security: Security) -> dict[str, str]:
    module = f"org.apache.kafka.common.security.{_LOGIN[security.mechanism]}"
    username, password = quote_jaas(security.username or ""), quote_jaas(security.password or "")
    jaas = f"{module} required username={username} password={password};"
    return {"sasl.mechanism": security.mechanism, "sasl.jaas.config": jaas}


def quote_jaas(text: str) -> str:
    """A value as Java reads it in a JAAS line (a StreamTokenizer's quoted string): a quote or a
    line break would end it, a backslash begins an escape."""
    escaped = "".join(
        f"\\{c}" if c in '"\\' else f"\\{ord(c):03o}" if ord(c) < 32 else c for c in text
    )
    return f'"{escaped}"'


def _tls_options(security: Security) -> dict[str, str]:
    found: dict[str, str] = {}
    if security.ca_file:
        found |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.certificates": _read_pem("ca_file", security.ca_file, "CERTIFICATE"),
        }
    if security.certificate_file and security.key_file:
        found |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _read_pem(
                "certificate_file", security.certificate_file, "CERTIFICATE"
            ),
            "ssl.keystore.key": _read_key(security.key_file, security.key_password),
        }
    return found


def _check_file(field: str, name: str) -> Path:
    path = Path(os.path.expanduser(name))
    if not path.is_file():
        raise SpecError(
            "no such file",
            where=f"security: {field}",
            value=name,
            do="Write the whole path of a PEM file that is there where the run starts",
        )
    return path


def _read_pem(field: str, name: str, kind: str) -> str:
    path = _check_file(field, name)
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        text = ""
    if f"-----BEGIN {kind}-----" not in text:
        raise SpecError(
            f"the file holds no {kind} in PEM form",
            where=f"security: {field}",
            value=name,
            do="Convert it (openssl writes PEM), and let the run read it",
        )
    return text


def _read_key(name: str, password: str | None) -> str:
    """A private key as Java reads it: PKCS #8 without a password (Java 17 knows few of the ciphers
    that keys are kept under; the option is secret anyway)."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    path = _check_file("key_file", name)
    try:
        key = load_pem_private_key(path.read_bytes(), password.encode() if password else None)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split("(")[0].split())
        raise SpecError(
            f"the file holds no private key in PEM form that can be read: {reason}",
            where="security: key_file",
            value=name,
            do="Convert it (openssl writes PEM); where it has a password, give `key_password`",
        ) from None
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
