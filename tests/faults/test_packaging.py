"""systemd, Kubernetes, container tools, Prometheus and the agent accept the files in packaging/."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from cli.agent.sink_threads import LAST_S
from cli.commands.agent import command
from dashboards.rules.alert import JOB
from tests.faults.api import HOST, running
from tests.faults.certificates import Authority

PACKAGING = Path(__file__).parents[2] / "packaging"
UNIT = PACKAGING / "systemd" / "casstat-agent.service"
MANIFESTS = sorted((PACKAGING / "kubernetes").glob("*.yaml"))
PROMETHEUS = PACKAGING / "prometheus"
PROGRAMS = Path(sys.executable).parent
# The highest allowed exposure, in tenths of a point on systemd's scale of 0.0 to 10.0. The unit file explains which
# restrictions it does not set.
EXPOSURE = 25


def output_of(*command_line: str | Path) -> str:
    result = subprocess.run(command_line, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def test_systemd_reports_no_problem_in_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/casstat/bin/casstat", str(PROGRAMS / "casstat")))
    messages = output_of("systemd-analyze", "verify", "--man=no", unit)
    assert [line for line in messages.splitlines() if UNIT.name in line] == []


def test_systemd_waits_for_the_last_upload_of_an_agent_that_stops() -> None:
    (limit_s,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.MULTILINE)
    assert int(limit_s) >= LAST_S + 5


def test_the_services_exposure_is_below_the_threshold() -> None:
    output_of("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}", UNIT)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_the_manifests_conform_to_the_kubernetes_schema(manifest: Path) -> None:
    assert "passed" in output_of(PROGRAMS / "kubernetes-validate", "--strict", manifest)


def test_the_linter_reports_no_problem_in_the_containerfile() -> None:
    output_of(PROGRAMS / "hadolint", PACKAGING / "container" / "Containerfile")


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_the_agent_accepts_the_settings_in_the_manifests(manifest: Path, tmp_path: Path) -> None:
    documents = list(yaml.safe_load_all(manifest.read_text()))
    arguments: list[str] = []
    for document in documents:
        for container in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ()):
            arguments += container.get("args", ()) if container["name"] == "casstat" else ()
    maps = [document["data"] for document in documents if document["kind"] == "ConfigMap"]
    for name, text in (item for data in maps for item in data.items()):
        (tmp_path / name).write_text(text)
    given = [word.replace("/etc/casstat/agent.toml", str(tmp_path / "agent.toml")) for word in arguments]
    result = CliRunner().invoke(command, [*given, "--print-config"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert json.dumps("0.0.0.0:17199") in result.stdout


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_no_pod_has_a_token_for_the_kubernetes_api(manifest: Path) -> None:
    templates = [doc["spec"]["template"] for doc in yaml.safe_load_all(manifest.read_text()) if "spec" in doc]
    assert templates
    assert all(template["spec"]["automountServiceAccountToken"] is False for template in templates)


def labels_and_port(manifest: Path) -> tuple[dict[str, str], str]:
    """Return a manifest's pod labels and the name of the agent's port."""
    (template,) = (doc["spec"]["template"] for doc in yaml.safe_load_all(manifest.read_text()) if "spec" in doc)
    (agent,) = (container for container in template["spec"]["containers"] if container["name"] == "casstat")
    (port,) = (port["name"] for port in agent["ports"] if port["containerPort"] == 17199)
    assert "annotations" not in template["metadata"], "a job for annotated pods would scrape the agents twice"
    return template["metadata"]["labels"], port


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_the_operator_scrapes_the_pods_under_the_job_name_in_the_rules(manifest: Path) -> None:
    labels, port = labels_and_port(manifest)
    spec = yaml.safe_load((PROMETHEUS / "podmonitor.yaml").read_text())["spec"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    (endpoint,) = spec["podMetricsEndpoints"]
    assert endpoint["port"] == port
    assert {"targetLabel": "job", "replacement": JOB} in endpoint["relabelings"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda path: path.stem)
def test_prometheus_scrapes_the_pods_under_the_job_name_in_the_rules(manifest: Path) -> None:
    labels, port = labels_and_port(manifest)
    (job,) = yaml.safe_load((PROMETHEUS / "kubernetes.yaml").read_text())["scrape_configs"]
    assert job["job_name"] == JOB
    (keep,) = job["relabel_configs"]
    meta = {f"__meta_kubernetes_pod_label_{name.replace('-', '_')}": value for name, value in labels.items()}
    meta["__meta_kubernetes_pod_container_port_name"] = port
    assert re.fullmatch(keep["regex"], ";".join(meta.get(name, "") for name in keep["source_labels"]))


def test_promtool_accepts_the_scrape_configuration(tmp_path: Path) -> None:
    config = yaml.safe_load((PROMETHEUS / "kubernetes.yaml").read_text())
    # Debian's Prometheus is built without Kubernetes service discovery, so remove that part.
    assert [job.pop("kubernetes_sd_configs") for job in config["scrape_configs"]] == [[{"role": "pod"}]]
    path = tmp_path / "prometheus.yml"
    path.write_text(json.dumps(config))
    assert "valid" in output_of("promtool", "check", "config", path)


def run_health_check(port: int) -> tuple[int, str]:
    """Run the container's health check, and return its exit status and stderr."""
    environment = {"CASSTAT_LISTEN": f"{HOST}:{port}"}
    check = PACKAGING / "container" / "healthcheck.py"
    result = subprocess.run(
        [sys.executable, "-I", check], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in result.stderr
    return result.returncode, result.stderr


NO_CONFIG = ""
PASSWORDS = "basic_auth_users: {alice: $2b$04$" + "." * 53 + "}"
TLS = "tls_server_config: {cert_file: server.pem, key_file: server.key%s}"
CERTIFICATES = TLS % ", client_ca_file: authority.pem, client_auth_type: RequireAndVerifyClientCert"


@pytest.mark.parametrize(
    "config",
    [
        NO_CONFIG,
        PASSWORDS,
        TLS % "",
        f"{TLS % ''}\n{PASSWORDS}",
        CERTIFICATES,
        CERTIFICATES[:-1] + ", max_version: TLS12}",
    ],
    ids=["plain", "passwords", "TLS", "TLS and passwords", "client certificates", "client certificates with TLS 1.2"],
)
def test_the_health_check_passes_with_every_web_configuration(tmp_path: Path, config: str) -> None:
    if "tls" in config:
        Authority(tmp_path).sign("server", "subjectAltName=DNS:cassandra.example")
    (tmp_path / "web.yml").write_text(config)
    with running(tmp_path, tmp_path / "web.yml") as api:
        assert run_health_check(api.port) == (0, "")


def test_the_health_check_fails_without_ticks_or_an_agent(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        api.agent.wrong = "no tick for 20 s"
        status, report = run_health_check(api.port)
        assert (status, "no tick for 20 s" in report) == (1, True)
    status, report = run_health_check(api.port)
    assert (status, "refused" in report) == (1, True)
