// Adds the rules up: one group a kind, switches applied, links and hold put on every alert in one place.
local addAnnotations = import 'add-annotations.libsonnet';
local promql = import 'promql.libsonnet';
local recording = import 'recording.libsonnet';

local groups = {
  'turnwatch-loops': import 'loops.libsonnet',
  'turnwatch-limits': import 'limits.libsonnet',
  'turnwatch-spend': import 'spend.libsonnet',
  'turnwatch-growth': import 'growth.libsonnet',
  'turnwatch-tools': import 'tools.libsonnet',
  'turnwatch-health': import 'health.libsonnet',
};

// Those where a minute costs money.
local atOnce = ['turnwatch-loops', 'turnwatch-limits', 'turnwatch-spend'];
// What looks far back, or is only looked at. What is in neither list has no interval of its own.
local onceAMinute = ['turnwatch-growth', 'turnwatch-by-tool'];

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
  local recorded = if config.recordingRules then recording(config, promql(config)) else {},
  local intervalOf(name) =
    if std.member(onceAMinute, name) then '1m'
    else if std.member(atOnce, name) then config.evaluationInterval
    else '',
  local group(name, rules) = {
    name: name,
    [if intervalOf(name) != '' then 'interval']: intervalOf(name),
    rules: rules,
  },

  prometheusAlerts+:: {
    groups+: [
      group(name, std.get(recorded, name, []) + alerts[name])
      for name in std.objectFields(alerts)
      if std.get(recorded, name, []) + alerts[name] != []
    ],
  },
  prometheusRules+:: {
    groups+: [
      group(name, recorded[name])
      for name in std.objectFields(recorded)
      if !std.objectHas(alerts, name)
    ],
  },
}
