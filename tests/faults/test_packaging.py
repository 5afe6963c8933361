"""What is under packaging/ is what systemd, Kubernetes and container builders take, and what the agent understands."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from cli.commands.agent import command
from dashboards.rules.alert import JOB
from tests.faults.api import HOST, running
from tests.faults.certificates import Authority

PACKAGING = Path(__file__).parents[2] / "packaging"
UNIT = PACKAGING / "systemd" / "casstat-agent.service"
MANIFESTS = sorted((PACKAGING / "kubernetes").glob("*.yaml"))
PROMETHEUS = PACKAGING / "prometheus"
PROGRAMS = Path(sys.executable).parent
# Of 10, where 10 is a service that may do whatever root may; what is missing is said in the unit.
EXPOSURE = 25


def printed(*words: str | Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/casstat/bin/casstat", str(PROGRAMS / "casstat")))
    said = printed("systemd-analyze", "verify", "--man=no", unit)
    assert [line for line in said.splitlines() if UNIT.name in line] == []


def test_the_service_is_hardened() -> None:
    printed("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", UNIT)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_kubernetes_takes_the_manifests(manifest: Path) -> None:
    assert "passed" in printed(PROGRAMS / "kubernetes-validate", "--strict", manifest)


def test_the_containerfile_is_sound() -> None:
    printed(PROGRAMS / "hadolint", PACKAGING / "container" / "Containerfile")


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_the_settings_in_the_manifests_are_settings(manifest: Path, tmp_path: Path) -> None:
    """The agent's arguments and files are tried on the agent itself."""
    documents = list(yaml.safe_load_all(manifest.read_text()))
    arguments: list[str] = []
    for document in documents:
        for container in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            arguments += container.get("args", ()) if container["name"] == "casstat" else ()
    files = {key: text for each in documents if each["kind"] == "ConfigMap" for key, text in each["data"].items()}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    given = [each.replace("/etc/casstat/agent.toml", str(tmp_path / "agent.toml")) for each in arguments]
    done = CliRunner().invoke(command, [*given, "--print-config"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert json.dumps("0.0.0.0:17199") in done.stdout


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_no_pod_has_a_token_for_the_kubernetes_api(manifest: Path) -> None:
    templates = [each["spec"]["template"] for each in yaml.safe_load_all(manifest.read_text()) if "spec" in each]
    assert templates
    assert all(template["spec"]["automountServiceAccountToken"] is False for template in templates)


def agents_port(manifest: Path) -> tuple[dict[str, str], str]:
    """Return the labels of the pods in a manifest, and the name of the agent's port."""
    (template,) = (each["spec"]["template"] for each in yaml.safe_load_all(manifest.read_text()) if "spec" in each)
    (agent,) = (each for each in template["spec"]["containers"] if each["name"] == "casstat")
    (port,) = (each["name"] for each in agent["ports"] if each["containerPort"] == 17199)
    assert "annotations" not in template["metadata"], "the job of annotated pods would scrape the agents a second time"
    return template["metadata"]["labels"], port


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_the_operator_scrapes_the_pods_in_the_job_of_the_rules(manifest: Path) -> None:
    labels, port = agents_port(manifest)
    spec = yaml.safe_load((PROMETHEUS / "podmonitor.yaml").read_text())["spec"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] == port
    assert {"targetLabel": "job", "replacement": JOB} in endpoint["relabelings"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_prometheus_scrapes_the_pods_in_the_job_of_the_rules(manifest: Path) -> None:
    labels, port = agents_port(manifest)
    (job,) = yaml.safe_load((PROMETHEUS / "kubernetes.yaml").read_text())["scrape_configs"]
    assert job["job_name"] == JOB
    (keep,) = job["relabel_configs"]
    meta = {f"__meta_kubernetes_pod_label_{name.replace('-', '_')}": value for name, value in labels.items()}
    meta["__meta_kubernetes_pod_container_port_name"] = port
    assert re.fullmatch(keep["regex"], ";".join(meta.get(name, "") for name in keep["source_labels"]))


def test_promtool_accepts_the_scrape_configuration(tmp_path: Path) -> None:
    config = yaml.safe_load((PROMETHEUS / "kubernetes.yaml").read_text())
    # Debian's Prometheus is built without the discovery of Kubernetes' pods.
    assert [job.pop("kubernetes_sd_configs") for job in config["scrape_configs"]] == [[{"role": "pod"}]]
    path = tmp_path / "prometheus.yml"
    path.write_text(json.dumps(config))
    assert "valid" in printed("promtool", "check", "config", path)


def health(port: int) -> tuple[int, str]:
    """Return the exit status of the container's health check, and its output."""
    environment = {"CASSTAT_LISTEN": f"{HOST}:{port}"}
    check = PACKAGING / "container" / "healthcheck.py"
    done = subprocess.run(
        [sys.executable, "-I", check], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


PLAIN = ""
PASSWORDS = "basic_auth_users: {alice: $2b$04$" + "." * 53 + "}"
TLS = "tls_server_config: {cert_file: server.pem, key_file: server.key%s}"
CERTIFICATES = TLS % ", client_ca_file: authority.pem, client_auth_type: RequireAndVerifyClientCert"


@pytest.mark.parametrize(
    "config",
    [PLAIN, PASSWORDS, TLS % "", f"{TLS % ''}\n{PASSWORDS}", CERTIFICATES, CERTIFICATES[:-1] + ", max_version: TLS12}"],
    ids=["plain", "passwords", "TLS", "TLS and passwords", "certificates", "certificates of TLS 1.2"],
)
def test_the_containers_health_check_passes_whatever_protects_the_agent(tmp_path: Path, config: str) -> None:
    if "tls" in config:
        Authority(tmp_path).sign("server", "subjectAltName=DNS:cassandra.example")
    (tmp_path / "web.yml").write_text(config)
    with running(tmp_path, tmp_path / "web.yml") as api:
        assert health(api.port) == (0, "")


def test_the_containers_health_check_fails_without_ticks_or_without_an_agent(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        api.agent.wrong = "no tick for 20 s"
        status, report = health(api.port)
        assert (status, "no tick for 20 s" in report) == (1, True)
    status, report = health(api.port)
    assert (status, "refused" in report) == (1, True)
