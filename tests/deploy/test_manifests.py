"""Manifests against their schemas, as far as a machine without a container engine can tell.

KubeRay's custom resource definitions are read from the folder that CODESIGN_KUBERAY_SCHEMAS names (files
ray.io_rayclusters.yaml and ray.io_rayjobs.yaml of the ray-project/kuberay repository). Without it only the kinds of
Kubernetes itself are checked, and the test says so.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
MANIFESTS = sorted((DEPLOY / "kuberay").glob("*.yaml"))
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in MANIFESTS:
        for document in yaml.load_all(path.read_text(), Loader=LOADER):
            yield f"{path.name}:{document['kind']}", document


DOCUMENTS = dict(documents())
RAY = {name: d for name, d in DOCUMENTS.items() if d["apiVersion"].startswith("ray.io/")}


def strict(schema: Any) -> Any:
    """The same schema with unknown fields refused: a server would drop a misspelt field without a word."""
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items() if key not in ("properties", "anyOf", "allOf")}
    if "properties" in schema:
        closed["properties"] = {name: strict(value) for name, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            closed.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        closed = {"type": ["integer", "string"]}
    return closed


@pytest.fixture(scope="module")
def definitions() -> dict[str, Any]:
    folder = os.environ.get("CODESIGN_KUBERAY_SCHEMAS")
    if not folder:
        pytest.skip("CODESIGN_KUBERAY_SCHEMAS is not set: KubeRay's kinds were not checked")
    found = {}
    for path in Path(folder).glob("ray.io_*.yaml"):
        definition = yaml.load(path.read_text(), Loader=LOADER)["spec"]
        version = next(v for v in definition["versions"] if v["name"] == "v1")
        schema = version["schema"]["openAPIV3Schema"]
        schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
        found[definition["names"]["kind"]] = strict(schema)
    return found


@pytest.mark.parametrize("name", RAY)
def test_ray_manifests_are_what_the_operator_reads(name: str, definitions: dict[str, Any]) -> None:
    jsonschema.validate(RAY[name], definitions[RAY[name]["kind"]])


def test_the_check_would_see_a_misspelt_field(definitions: dict[str, Any]) -> None:
    job = next(d for d in RAY.values() if d["kind"] == "RayJob")
    wrong = job | {"spec": job["spec"] | {"submisionMode": "SidecarMode"}}

    with pytest.raises(jsonschema.ValidationError, match="submisionMode"):
        jsonschema.validate(wrong, definitions["RayJob"])


@pytest.mark.parametrize("name", [n for n in DOCUMENTS if n not in RAY])
def test_kinds_of_kubernetes_are_valid(name: str) -> None:
    validator = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    validator.validate(DOCUMENTS[name], "1.33", strict=True)


def pods(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, dict):
        if "containers" in document:
            yield document
        for value in document.values():
            yield from pods(value)
    elif isinstance(document, list):
        for value in document:
            yield from pods(value)


def test_every_container_has_limits_and_one_image_of_ours() -> None:
    containers = [c for d in DOCUMENTS.values() for pod in pods(d) for c in pod["containers"]]

    assert len(containers) >= 8
    for container in containers:
        assert container["resources"]["requests"].keys() >= {"cpu", "memory"}
        assert container["resources"]["limits"].keys() >= {"cpu", "memory"}
        assert container["image"] in {"codesign:0.1.0", "postgres:17"}


def test_servers_have_probes_and_secrets_come_from_the_secret() -> None:
    for name in ("codesign.yaml:Deployment", "postgres.yaml:StatefulSet"):
        container = DOCUMENTS[name]["spec"]["template"]["spec"]["containers"][0]
        assert {"readinessProbe", "livenessProbe"} <= container.keys()
    known = DOCUMENTS["secrets.example.yaml:Secret"]["stringData"].keys()
    asked = re.findall(r"secretKeyRef: \{name: codesign, key: (\w+)\}", "".join(p.read_text() for p in MANIFESTS))
    assert set(asked) == set(known)
    for path in MANIFESTS:
        if path.name != "secrets.example.yaml":
            assert "change-me" not in path.read_text()


def test_ray_asks_for_a_token_and_the_head_does_no_work() -> None:
    for document in RAY.values():
        cluster = document["spec"].get("rayClusterSpec", document["spec"])
        assert cluster["authOptions"] == {"mode": "token"}
        assert cluster["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
        assert cluster["rayVersion"] in (DEPLOY / "requirements.txt").read_text()


def test_compose_names_what_it_uses() -> None:
    compose = yaml.load((DEPLOY / "compose.yaml").read_text(), Loader=LOADER)
    services = compose["services"]

    assert set(services) == {"postgres", "migrate", "dashboard", "ray-head", "ray-worker", "study", "sweep"}
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in compose["volumes"]
    for name in ("postgres", "dashboard", "ray-head"):
        assert "healthcheck" in services[name]
    used = set(re.findall(r"\$\{([A-Z_]+):\?", (DEPLOY / "compose.yaml").read_text()))
    offered = {line.split("=")[0] for line in (DEPLOY / ".env.example").read_text().splitlines() if "=" in line}
    assert used == {name for name in offered if not name.startswith("#")}


def test_docker_itself_accepts_the_compose_file(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not installed: the file was checked by structure only")
    environment = {**os.environ, "POSTGRES_PASSWORD": "x", "RAY_AUTH_TOKEN": "x", "HOME": str(tmp_path)}
    command = [docker, "compose", "-f", str(DEPLOY / "compose.yaml"), "--profile", "run", "config", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)

    assert done.returncode == 0, done.stderr


def test_commands_in_the_manifests_exist() -> None:
    text = "".join(p.read_text() for p in [*MANIFESTS, DEPLOY / "compose.yaml"]).replace('", "', " ")
    commands = set(re.findall(r"codesign (study run|sweep run|db upgrade|dashboard)\b", text))
    spaces = set(re.findall(r"codesign (?:study|sweep) run ([a-z_]+)", text)) | {"training_dense"}

    assert commands == {"study run", "sweep run", "db upgrade", "dashboard"}
    for space in spaces:
        assert (ROOT / "search_spaces" / f"{space}.yaml").exists()
