"""The Helm chart, rendered by Helm and checked against Kubernetes' own schemas, without a cluster."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "config" / "helm" / "fixloop"
EVERYTHING = (
    "keda.enabled=true",
    "seal.secret=seal",
    "serve.secret=people",
    "serve.otlp=http://collector:4318",
    "serve.repositories={https://git.example/shop,/repositories}",
    "worker.env.FIXLOOP_SANDBOX=off",
)
KUBERNETES = "1.30"


def rendered(*values: str) -> dict[tuple[str, str], Any]:
    """Kind and name → what Helm renders with these values."""
    helm = shutil.which("helm", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if helm is None:
        pytest.skip("no helm here; helm-binary brings it on Linux x86-64")
    words = [helm, "template", "fix", str(CHART), *(word for each in values for word in ("--set", each))]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    found = [each for each in YAML(typ="safe").load_all(text) if each]
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


@pytest.mark.parametrize("values", [(), EVERYTHING])
def test_the_rendered_chart_is_valid_for_kubernetes(values: tuple[str, ...]) -> None:
    found = rendered(*values)

    unknown = []
    for (kind, _), resource in found.items():
        if kind == "ScaledObject":
            unknown.append(kind)
            continue
        kubernetes_validate.validate(resource, KUBERNETES, strict=True)
    kinds = sorted(kind for kind, _ in found if kind != "ScaledObject")
    assert kinds == ["Deployment", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"]
    assert unknown == (["ScaledObject"] if values else [])


def test_every_container_is_confined_and_only_those_that_need_it_reach_redis() -> None:
    found = rendered(*EVERYTHING)

    for name in ("fix-worker", "fix-serve"):
        pod = found["Deployment", name]["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            knows = "FIXLOOP_STATE_URL" in [each["name"] for each in container["env"]]
            assert knows is (container["name"] != "runner")


def test_chart_and_compose_start_the_same() -> None:
    compose = YAML(typ="safe").load((ROOT / "docker-compose.yml").read_text())["services"]
    found = rendered()
    containers = {
        container["name"]: container["command"]
        for name in ("fix-worker", "fix-serve")
        for container in found["Deployment", name]["spec"]["template"]["spec"]["containers"]
    }

    assert containers["worker"] == compose["worker"]["command"]
    assert containers["runner"] == compose["runner"]["command"]
    assert containers["serve"][:2] == compose["serve"]["command"][:2] == ["fixloop", "serve"]
    grace = found["Deployment", "fix-worker"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert f"{grace}s" == compose["worker"]["stop_grace_period"]
