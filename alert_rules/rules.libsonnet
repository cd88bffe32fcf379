// Adds the rules up: one group a kind, switches applied, links and hold put on every alert in one place.
local addAnnotations = import 'add-annotations.libsonnet';
local promql = import 'promql.libsonnet';
local recording = import 'recording.libsonnet';

local groups = {
  'turnwatch-loops': import 'loops.libsonnet',
  'turnwatch-limits': import 'limits.libsonnet',
  'turnwatch-spend': import 'spend.libsonnet',
  'turnwatch-tools': import 'tools.libsonnet',
  'turnwatch-health': import 'health.libsonnet',
};

{
  local config = $._config,
  local alerts = {
    [name]: [
      addAnnotations(config, alert)
      for alert in groups[name](config, promql(config))
      if config.enabled[alert.alert]
    ]
    for name in std.objectFields(groups)
  },

  prometheusAlerts+:: {
    groups+: [
      { name: name, rules: alerts[name] }
      for name in std.objectFields(alerts)
      if alerts[name] != []
    ],
  },
  prometheusRules+:: {
    groups+: if config.recordingRules
    then [{ name: 'turnwatch-recorded', interval: '1m', rules: recording(config, promql(config)) }]
    else [],
  },
}
