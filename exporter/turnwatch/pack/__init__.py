"""The pack: alert rules, dashboards, Alertmanager routing and runbooks, made from Jsonnet."""
