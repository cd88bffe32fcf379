// The turnwatch mixin: alert rules, recording rules, dashboards and Alertmanager routing of LLM agents.
//
// Everything is a hidden field, as jsonnet-bundler users expect. Change `_config+::` to tune it.
(import 'alert_rules/config.libsonnet') +
(import 'alert_rules/rules.libsonnet') +
(import 'alert_rules/alertmanager.libsonnet') +
(import 'alert_rules/grafana_alerts.libsonnet') +
(import 'alert_rules/span_queries.libsonnet') +
(import 'dashboards/dashboards.libsonnet')
