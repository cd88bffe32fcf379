// Puts on an alert what every alert has: the hold after its cause is gone, and the two links.
// `dashboard` is a dashboard's uid; the alert's own labels become the dashboard's variables.
function(config, alert) {
  local labels = alert.labelsOfSeries,
  local variables = std.join('&', ['var-%s={{ $labels.%s | urlquery }}' % [label, label] for label in labels]),

  alert: alert.alert,
  expr: std.rstripChars(alert.expr, "\n"),
  [if std.objectHas(alert, 'pendingFor') then 'for']: alert.pendingFor,
  keep_firing_for: config.keepFiringFor,
  labels: { severity: alert.severity },
  annotations: {
    summary: alert.summary,
    description: std.rstripChars(alert.description, "\n"),
    runbook_url: '%s/%s.md' % [config.runbookBaseUrl, alert.alert],
    dashboard_url: '%s/%s%s' % [config.dashboardBaseUrl, alert.dashboard, if labels == [] then '' else '?' + variables],
  },
}
