// Puts on an alert what every alert has: the hold after its cause is gone, and the two links.
// `dashboard` is a dashboard's uid; the alert's own labels become the dashboard's variables.
function(config, alert) {
  local labels = alert.labelsOfSeries,
  local variables = std.join('&', ['var-' + label + '={{ $labels.' + label + ' | urlquery }}' for label in labels]),

  alert: alert.alert,
  expr: alert.expr,
  [if std.objectHas(alert, 'pendingFor') then 'for']: alert.pendingFor,
  keep_firing_for: config.keepFiringFor,
  labels: { severity: alert.severity },
  annotations: {
    summary: alert.summary,
    description: alert.description,
    runbook_url: config.runbookBaseUrl + '/' + alert.alert + '.md',
    dashboard_url: config.dashboardBaseUrl + '/' + alert.dashboard + (if labels == [] then '' else '?' + variables),
  },
}
