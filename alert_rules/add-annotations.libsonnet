// Puts on an alert what every alert has: the hold after its cause is gone, and the two links.
// `dashboard` is a dashboard's uid; the labels in `filledIn` become its variables.
function(config, alert) {
  local variables = ['var-' + label + '={{ $labels.' + label + ' | urlquery }}' for label in alert.filledIn],

  alert: alert.alert,
  expr: alert.expr,
  [if std.objectHas(alert, 'pendingFor') then 'for']: alert.pendingFor,
  keep_firing_for: config.keepFiringFor,
  labels: { severity: alert.severity },
  annotations: {
    summary: alert.summary,
    description: alert.description,
    runbook_url: config.runbookBaseUrl + '/' + alert.alert + '.md',
    dashboard_url: config.dashboardBaseUrl + '/' + alert.dashboard + (if variables == [] then '' else '?' + std.join('&', variables)),
  },
}
