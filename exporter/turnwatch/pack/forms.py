"""The pack in the forms that other systems take: Mimir's ruler, the Prometheus operator, Grafana's provisioning."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from turnwatch.pack.past_alerts import past_alerts
from turnwatch.pack.render import ALERTMANAGER_FILE, GRAFANA_ALERTS_FILE, RULES_FILE, as_yaml
from turnwatch.pack.yaml_text import value_of

KUBERNETES_NAME: Final = "turnwatch"
SIDECAR_LABEL: Final = {"grafana_dashboard": "1"}
"""What Grafana's sidecar looks for in a ConfigMap."""

_OPERATOR: Final = "monitoring.coreos.com"
_MATCHER: Final = re.compile(r'(?P<name>\w+)(?P<matchType>=~|!~|!=|=)"(?P<value>.*)"')


def mimir(files: Mapping[str, str]) -> dict[str, str]:
    """Return rule files for the ruler of Mimir and Grafana Cloud, as ``mimirtool rules load`` takes them.

    One group a file: the ruler's interface takes exactly one group a request.
    """
    groups = value_of(files[RULES_FILE])["groups"]
    return {
        f"mimir/{group['name']}.yaml": as_yaml({"namespace": KUBERNETES_NAME, "groups": [group]}) for group in groups
    }


def grafana_files(files: Mapping[str, str]) -> dict[str, str]:
    """Return a folder for Grafana's file provisioning; it is meant to be mounted at /etc/grafana/provisioning."""
    provider = {
        "name": KUBERNETES_NAME,
        "folder": "Agents",
        "type": "file",
        "disableDeletion": False,
        "allowUiUpdates": False,
        "options": {"path": "/etc/grafana/provisioning/dashboards/turnwatch"},
    }
    provisioned = {
        "grafana/provisioning/dashboards/turnwatch.yaml": as_yaml({"apiVersion": 1, "providers": [provider]})
    }
    provisioned["grafana/provisioning/alerting/turnwatch.yaml"] = files[GRAFANA_ALERTS_FILE]
    for name, dashboard in _dashboards(files).items():
        provisioned[f"grafana/provisioning/dashboards/turnwatch/{name}"] = dashboard
    return provisioned


def kubernetes(files: Mapping[str, str], config: Mapping[str, Any]) -> dict[str, str]:
    """Return what the Prometheus operator and Grafana's sidecar take.

    Namespaces and labels are those of ``_config.kubernetes``. The operator adds a matcher for the namespace of an
    AlertmanagerConfig to its routes, so agents in other namespaces need it switched off there
    (``alertmanagerConfigMatcherStrategy: {type: None}`` in the Alertmanager object).
    """
    given = config.get("kubernetes", {})
    namespace, labels = given.get("namespace", ""), given.get("labels", {})
    alertmanager = given.get("alertmanagerNamespace", namespace)
    rules = value_of(files[RULES_FILE])
    monitor = {
        "selector": {"matchLabels": {"turnwatch": "true"}},
        "namespaceSelector": {"any": True},
        "endpoints": [{"port": "metrics"}],
    }
    routes = _alertmanager_spec(value_of(files[ALERTMANAGER_FILE]))
    objects: dict[str, list[dict[str, Any]]] = {
        name.lower(): [_object(f"{_OPERATOR}/{version}", name, KUBERNETES_NAME, where, labels, spec=spec)]
        for name, version, where, spec in (
            ("PrometheusRule", "v1", namespace, rules),
            ("ServiceMonitor", "v1", namespace, monitor),
            ("AlertmanagerConfig", "v1alpha1", alertmanager, routes),
        )
    }
    where = given.get("dashboardNamespace", namespace)
    found_by = SIDECAR_LABEL | given.get("dashboardLabels", {})
    objects["dashboards"] = [
        _object("v1", "ConfigMap", name.removesuffix(".json"), where, found_by, data={name: dashboard})
        for name, dashboard in _dashboards(files).items()
    ]
    return {f"kubernetes/{name}.yaml": _documents(documents) for name, documents in objects.items()}


FORMS: Final[dict[str, Callable[[Mapping[str, str], Mapping[str, Any]], dict[str, str]]]] = {
    "mimir": lambda files, _: mimir(files),
    "grafana": lambda files, _: grafana_files(files),
    "kubernetes": kubernetes,
    "history": lambda files, _: past_alerts(files),
}
"""Each form by its name on the command line; it takes the pack's files and the keys of ``_config`` that were set."""


def _dashboards(files: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix("dashboards/"): content for name, content in files.items() if name.startswith("dashboards/")
    }


def _object(api: str, kind: str, name: str, namespace: str, labels: Mapping[str, str], **body: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": {"app.kubernetes.io/part-of": KUBERNETES_NAME, **labels}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **body}


def _documents(objects: list[dict[str, Any]]) -> str:
    first, *others = (as_yaml(document) for document in objects)
    return first + "".join("---\n" + document.partition("\n")[2] for document in others)


def _alertmanager_spec(config: Mapping[str, Any]) -> dict[str, Any]:
    # Receivers with secrets are named by Secret in Kubernetes, which nobody can fill in but the cluster's owner:
    # only the webhooks go over.
    (route,) = config["route"]["routes"]
    return {
        "route": _route(route),
        "receivers": [
            {"name": receiver["name"]}
            | (
                {"webhookConfigs": [_camel(webhook) for webhook in receiver["webhook_configs"]]}
                if "webhook_configs" in receiver
                else {}
            )
            for receiver in config["receivers"]
        ],
        "inhibitRules": [
            {
                "sourceMatch": _matchers(rule["source_matchers"]),
                "targetMatch": _matchers(rule["target_matchers"]),
                "equal": rule["equal"],
            }
            for rule in config["inhibit_rules"]
        ],
    }


def _route(route: Mapping[str, Any]) -> dict[str, Any]:
    converted = {_camel_name(key): value for key, value in route.items() if key not in {"matchers", "routes"}}
    converted["matchers"] = _matchers(route["matchers"])
    if "routes" in route:
        converted["routes"] = [_route(below) for below in route["routes"]]
    return converted


def _matchers(matchers: list[str]) -> list[dict[str, str]]:
    return [found.groupdict() for matcher in matchers for found in [_MATCHER.fullmatch(matcher)] if found]


def _camel(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {_camel_name(key): value for key, value in mapping.items()}


def _camel_name(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)
