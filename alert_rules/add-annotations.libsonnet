// Puts on an alert what every alert has: the hold after its cause is gone, and the two links.
// `dashboard` is a dashboard's uid; the labels in `filledIn` become its variables, and those that alerts are kept apart by
// where they are there.
//
// An alert about an agent also says what its dearest turn has cost so far: Alertmanager's templates cannot ask.
local promql = import 'promql.libsonnet';

function(config, alert) {
  local variables =
    std.join('', [
      '{{ with $labels.' + label + ' }}var-' + label + '={{ . | urlquery }}&{{ end }}'
      for label in config.aggregationLabels
      if !std.member(alert.filledIn, label)
    ])
    + std.join('&', ['var-' + label + '={{ $labels.' + label + ' | urlquery }}' for label in alert.filledIn]),

  // Of this agent in this cluster, namespace and job: another team's may have the same name. printf's %q quotes a name
  // as PromQL reads it, one that is not there as "", which selects series without it. Any other % is doubled.
  local whose = config.aggregationLabels + ['agent'],
  local marked = promql(config).metric('agent_turn_spend_usd_max', [label + '=NAME' for label in whose]),
  local dearestTurn = 'max(' + std.strReplace(std.strReplace(marked, '%', '%%'), '=NAME', '=%q') + ')',

  alert: alert.alert,
  expr: alert.expr,
  [if std.objectHas(alert, 'pendingFor') then 'for']: alert.pendingFor,
  keep_firing_for: config.keepFiringFor,
  labels: { severity: alert.severity },
  annotations: {
    summary: alert.summary,
    description: alert.description,
    runbook_url: config.runbookBaseUrl + '/' + alert.alert + '.md',
    dashboard_url: config.dashboardBaseUrl + '/' + alert.dashboard + '?' + variables,
    [if std.member(alert.filledIn, 'agent') then 'turn_spend']:
      '{{ with printf `' + dearestTurn + '` ' + std.join(' ', ['$labels.' + label for label in whose]) + ' | query }}{{ . | first | value | printf "%.2f" }} USD{{ end }}',
  },
}
