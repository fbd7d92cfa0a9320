"""What a client is told about a Kafka cluster, and that nobody else is told.

It comes from the spec or from an Airflow connection.
"""

import json
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from sluice.errors import SpecError
from sluice.setup.java import find_java
from sluice.spec import KafkaCluster, Security, client_config, resolve_cluster, spark_options
from sluice.spec.kafka_client import quote_jaas

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = ec.generate_private_key(ec.SECP256R1())


def write_key(kind: PrivateFormat, password: str | None = None) -> str:
    """The client's key in one of the forms in which keys are kept."""
    return KEY.private_bytes(
        Encoding.PEM,
        kind,
        BestAvailableEncryption(password.encode()) if password else NoEncryption(),
    ).decode()


@pytest.fixture
def connect(monkeypatch):
    """Puts an Airflow connection into the environment and returns a cluster that names it."""

    def connect(extra: dict | None = None, cluster: dict | None = None, **parts) -> KafkaCluster:
        monkeypatch.setenv(
            "AIRFLOW_CONN_SHOP", json.dumps({"conn_type": "kafka", **parts, "extra": extra or {}})
        )
        return KafkaCluster(connection="shop", **(cluster or {}))

    return connect


@pytest.fixture
def files(tmp_path):
    """PEM files: of the authority, of the client, and its key."""
    paths = {
        "ca_file": tmp_path / "ca.pem",
        "certificate_file": tmp_path / "client.pem",
        "key_file": tmp_path / "client.key",
    }
    for name, path in paths.items():
        path.write_text(write_key(PrivateFormat.PKCS8, "kp") if name == "key_file" else CERTIFICATE)
    return {name: str(path) for name, path in paths.items()}


def test_a_cluster_without_security_is_its_servers():
    cluster = KafkaCluster(servers="a:9092,b:9092")
    assert resolve_cluster(cluster) == ("a:9092,b:9092", None)
    assert spark_options(cluster) == {"kafka.bootstrap.servers": "a:9092,b:9092"}
    assert client_config(cluster) == {"bootstrap.servers": "a:9092,b:9092"}


def test_a_password_reaches_both_clients():
    cluster = KafkaCluster(servers="a:9093", security={"username": "ann", "password": "pw"})
    assert spark_options(cluster) == {
        "kafka.bootstrap.servers": "a:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="ann" password="pw";'
        ),
    }
    assert client_config(cluster) == {
        "bootstrap.servers": "a:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "ann",
        "sasl.password": "pw",
    }


def test_scram_has_a_login_module_of_its_own():
    cluster = KafkaCluster(
        servers="a:1",
        security={
            "protocol": "SASL_PLAINTEXT",
            "mechanism": "SCRAM-SHA-512",
            "username": "u",
            "password": "p",
        },
    )
    assert "scram.ScramLoginModule required" in spark_options(cluster)["kafka.sasl.jaas.config"]


JAAS = """
public class Jaas {
    public static void main(String[] args) throws Exception {
        var file = java.nio.file.Path.of(args[0]);
        var in = new java.io.StreamTokenizer(java.nio.file.Files.newBufferedReader(file));
        in.quoteChar('"'); in.slashSlashComments(true); in.slashStarComments(true);
        in.nextToken();
        var bytes = in.sval.getBytes("UTF-8");
        System.out.print(java.util.HexFormat.of().formatHex(bytes));
        System.out.print(" " + (in.nextToken() == ';'));
    }
}
"""


def test_java_reads_a_quoted_password_as_it_is(tmp_path):
    password = "a\"b\\c;d'e\n\t7ü//x /* y */\\n"
    (tmp_path / "Jaas.java").write_text(JAAS)
    (tmp_path / "line").write_text(quote_jaas(password) + ";", encoding="utf-8")
    command = [
        str(find_java()),
        "-XX:TieredStopAtLevel=1",
        "-Xshare:auto",
        str(tmp_path / "Jaas.java"),
        str(tmp_path / "line"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{password.encode().hex()} true"


def test_files_travel_as_text_to_spark_and_as_paths_to_librdkafka(files):
    cluster = KafkaCluster(
        servers="a:1", security={"protocol": "SSL", **files, "key_password": "kp"}
    )
    assert spark_options(cluster) == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": CERTIFICATE,
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": CERTIFICATE,
        "kafka.ssl.keystore.key": write_key(PrivateFormat.PKCS8),
    }
    assert client_config(cluster) == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "ssl.ca.location": files["ca_file"],
        "ssl.certificate.location": files["certificate_file"],
        "ssl.key.location": files["key_file"],
        "ssl.key.password": "kp",
    }


def test_a_missing_file_is_named_with_its_field():
    cluster = KafkaCluster(
        servers="a:1", security={"protocol": "SSL", "ca_file": "/nowhere/ca.pem"}
    )
    for settings in (spark_options, client_config):
        with pytest.raises(
            SpecError,
            match=r"security: ca_file: no such file \(got '/nowhere/ca.pem'\)\. "
            "Write the whole path",
        ):
            settings(cluster)


@pytest.mark.parametrize(
    ("kind", "password"),
    [
        (PrivateFormat.PKCS8, None),
        (PrivateFormat.PKCS8, "kp"),
        (PrivateFormat.TraditionalOpenSSL, None),
        (PrivateFormat.TraditionalOpenSSL, "kp"),
    ],
    ids=["plain", "plain_locked", "old", "old_locked"],
)
def test_a_key_reaches_java_in_the_one_form_it_reads(files, kind, password):
    Path(files["key_file"]).write_text(write_key(kind, password))
    cluster = KafkaCluster(
        servers="a:1", security={"protocol": "SSL", **files, "key_password": password}
    )
    assert spark_options(cluster)["kafka.ssl.keystore.key"] == write_key(PrivateFormat.PKCS8)


def test_a_key_that_cannot_be_opened_is_refused_without_its_password(files):
    for password in (None, "hidden"):
        with pytest.raises(
            SpecError,
            match="key_file: the file holds no private key in PEM form that can be read"
            ".*key_password",
        ) as caught:
            spark_options(
                KafkaCluster(
                    servers="a:1", security={"protocol": "SSL", **files, "key_password": password}
                )
            )
        assert "hidden" not in str(caught.value)


def test_a_file_without_a_certificate_is_refused(files, tmp_path):
    (tmp_path / "ca.pem").write_bytes(b"\xff\x00der")
    with pytest.raises(SpecError, match="ca_file: the file holds no CERTIFICATE"):
        spark_options(KafkaCluster(servers="a:1", security={"protocol": "SSL", **files}))


def test_an_airflow_connection_says_it_all(connect):
    cluster = connect(
        {
            "bootstrap.servers": "k:9093",
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "SCRAM-SHA-256",
            "sasl.username": "u",
            "sasl.password": "p",
            "ssl.ca.location": "/ca.pem",
            "group.id": "airflow",
        }
    )
    assert resolve_cluster(cluster) == (
        "k:9093",
        Security(
            protocol="SASL_SSL",
            mechanism="SCRAM-SHA-256",
            username="u",
            password="p",
            ca_file="/ca.pem",
        ),
    )


def test_host_port_login_and_password_are_the_fallback(connect):
    assert resolve_cluster(connect(host="k", port=9094, login="u", password="p")) == (
        "k:9094",
        Security(protocol="SASL_SSL", username="u", password="p"),
    )
    assert resolve_cluster(connect(host="k")) == ("k:9092", None)
    assert resolve_cluster(connect(host="k1:1,k2:2")) == ("k1:1,k2:2", None)
    assert resolve_cluster(
        connect({"security.protocol": "SSL"}, host="k", login="u", password="p")
    )[1] == Security(protocol="SSL")


def test_a_connection_with_an_authority_alone_means_tls(connect):
    assert resolve_cluster(connect({"ssl.ca.location": "/ca.pem"}, host="k"))[1] == Security(
        protocol="SSL", ca_file="/ca.pem"
    )


def test_the_fields_of_the_spec_win(connect):
    cluster = connect(
        {
            "bootstrap.servers": "k:1",
            "security.protocol": "SASL_SSL",
            "sasl.username": "u",
            "sasl.password": "p",
            "ssl.ca.location": "/a.pem",
        },
        cluster={"servers": "mine:1", "security": {"protocol": "SSL", "ca_file": "/b.pem"}},
    )
    servers, security = resolve_cluster(cluster)
    assert (servers, security.protocol, security.ca_file) == ("mine:1", "SSL", "/b.pem")


@pytest.mark.parametrize(
    ("extra", "parts", "message"),
    [
        ({}, {}, "names no brokers"),
        (
            {"sasl.mechanism": "GSSAPI", "sasl.username": "u", "sasl.password": "hidden"},
            {"host": "k"},
            "mechanism Input should be 'PLAIN'",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.password": "hidden"},
            {"host": "k"},
            "needs `username` and `password`",
        ),
        ({"ssl.ca.pem": "hidden"}, {"host": "k"}, "no client here can do.*ssl.ca.pem"),
    ],
)
def test_a_connection_that_cannot_be_used_says_so_and_no_secret(connect, extra, parts, message):
    with pytest.raises(SpecError, match=message) as caught:
        resolve_cluster(connect(extra, **parts))
    assert "AIRFLOW_CONN_SHOP" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_password_is_in_no_repr(connect):
    cluster = connect({"bootstrap.servers": "k:1", "sasl.username": "u", "sasl.password": "hidden"})
    own = KafkaCluster(
        servers="a:1", security={"username": "u", "password": "hidden", "key_password": "hidden"}
    )
    assert "hidden" not in repr((cluster, resolve_cluster(cluster), own, resolve_cluster(own)))
