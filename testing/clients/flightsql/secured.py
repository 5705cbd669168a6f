"""adbc_driver_flightsql, pyarrow and influxdb3-python with a server that has users and a certificate: passwords,
tokens, wrong ones, and connections that nobody should trust. Needs BINARY, WORK, and two free ports,
MARIGRAM_HTTP_PORT and MARIGRAM_FLIGHT_PORT."""

import os
import pathlib
import subprocess
import time

import adbc_driver_flightsql.dbapi as flight_sql
import adbc_driver_manager
import pyarrow.flight
from adbc_driver_flightsql import DatabaseOptions
from influxdb_client_3 import InfluxDBClient3

binary, work = os.environ["BINARY"], pathlib.Path(os.environ["WORK"]) / "flight-secured"
http_port, flight_port = int(os.environ["MARIGRAM_HTTP_PORT"]), int(os.environ["MARIGRAM_FLIGHT_PORT"])
work.mkdir()


def run(*command, text=None):
    subprocess.run(command, cwd=work, check=True, input=text, text=True, capture_output=True)


def authority(name):
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
        "-keyout", f"{name}.key", "-out", f"{name}.pem")
    return (work / f"{name}.pem").read_text()


own, foreign = authority("authority"), authority("foreign")
run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key",
    "-out", "server.csr")
(work / "extensions").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
run("openssl", "x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key",
    "-CAcreateserial", "-days", "2", "-extfile", "extensions", "-out", "server.pem")
run(binary, "user", "add", "ann", "--admin", "--password-file", "-", "--data", "data", text="correct horse\n")
log = (work / "log").open("w")
server = subprocess.Popen(
    [binary, "serve", "--data", "data", "--http", f"127.0.0.1:{http_port}", "--postgres", "off",
     "--flight", f"127.0.0.1:{flight_port}", "--tls-cert", "server.pem", "--tls-key", "server.key"],
    cwd=work, stdout=log, stderr=log)

uri = f"grpc+tls://localhost:{flight_port}"
password = {"username": "ann", "password": "correct horse"}
trust = {DatabaseOptions.TLS_ROOT_CERTS.value: own}


def ask(statement, options, to=uri):
    with flight_sql.connect(to, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def refused(words, statement, options, to=uri):
    try:
        ask(statement, options, to)
    except adbc_driver_manager.Error as error:
        assert any(word in str(error) for word in words), error
    else:
        raise AssertionError(f"{options.keys()} came in")


try:
    for _ in range(100):
        try:
            assert ask("SELECT 41 + 1", trust | password) == [(42,)]
            break
        except adbc_driver_manager.Error:
            assert server.poll() is None, (work / "log").read_text()
            time.sleep(0.1)
    else:
        raise AssertionError((work / "log").read_text())
    [(_, token, *_)] = ask("CREATE TOKEN READ ON main", trust | password)
    bearer = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {token}"}
    assert ask("SELECT 41 + 1", trust | bearer) == [(42,)]
    refused(["permission", "not authorized", "PermissionDenied"], "CREATE DATABASE other", trust | bearer)
    refused(["wrong"], "SELECT 1", trust | password | {"password": "battery staple"})
    refused(["wrong or has expired"], "SELECT 1", trust | {DatabaseOptions.AUTHORIZATION_HEADER.value: "Bearer mgt_x"})
    refused(["has users"], "SELECT 1", trust)
    refused(["certificate"], "SELECT 1", {DatabaseOptions.TLS_ROOT_CERTS.value: foreign} | password)
    refused(["Unavailable", "error reading"], "SELECT 1", password, f"grpc://localhost:{flight_port}")

    # The token of a handshake is worth nothing once the password is another one.
    client = pyarrow.flight.FlightClient(uri, tls_root_certs=own)
    options = pyarrow.flight.FlightCallOptions(headers=[client.authenticate_basic_token("ann", "correct horse")])
    ticket = pyarrow.flight.Ticket(b'{"database": "main", "sql_query": "SELECT 41 + 1 AS n", "query_type": "sql"}')
    assert client.do_get(ticket, options).read_all().to_pylist() == [{"n": 42}]
    influx = InfluxDBClient3(host=f"https://localhost:{flight_port}", token=token, database="main",
                             ssl_ca_cert=str(work / "authority.pem"))
    assert influx.query("SELECT 41 + 1 AS n").to_pylist() == [{"n": 42}]
    client.do_get(pyarrow.flight.Ticket(
        b'{"database": "main", "sql_query": "ALTER USER ann PASSWORD \'another one\'"}'), options).read_all()
    try:
        client.do_get(ticket, options).read_all()
    except pyarrow.flight.FlightUnauthenticatedError as error:
        assert "has expired" in str(error), error
    else:
        raise AssertionError("a token outlived its password")
    assert ask("SELECT 41 + 1", trust | password | {"password": "another one"}) == [(42,)]
finally:
    server.terminate()
    server.wait()
