// The same alerts for Grafana's own alerting, as its file provisioning takes them (Grafana 12 and later).
//
// A folder for each severity: within one, Grafana wants every title once, and the title becomes the label alertname,
// which must be that of Prometheus for the same routes to hold.

// The query has the threshold in it and answers with what is past it, so any answer fires; 0 can be one (`up == 0`).
local anyAnswer = -1;

local expression(refId, model) = {
  refId: refId,
  datasourceUid: '__expr__',
  relativeTimeRange: { from: 0, to: 0 },
  model: model { refId: refId, datasource: { type: '__expr__', uid: '__expr__' } },
};

local rule(config, alert) = {
  local said(text) = std.strReplace(text, '$value', '$values.A.Value'),

  uid: alert.alert + '-' + alert.labels.severity,
  title: alert.alert,
  condition: 'B',
  data: [
    {
      refId: 'A',
      datasourceUid: config.grafanaDatasourceUid,
      // An instant query looks back by itself; Grafana wants a range all the same.
      relativeTimeRange: { from: 600, to: 0 },
      model: {
        refId: 'A',
        datasource: { type: 'prometheus', uid: config.grafanaDatasourceUid },
        expr: alert.expr,
        instant: true,
        range: false,
      },
    },
    expression('B', {
      type: 'threshold',
      expression: 'A',
      conditions: [{ evaluator: { type: 'gt', params: [anyAnswer] } }],
    }),
  ],
  // No answer is the good case. A query that fails says nothing about agents, so it changes nothing; but one alert says
  // that the data source does not answer, or nobody would know.
  noDataState: 'OK',
  execErrState: if alert.alert == 'AgentMetricsAbsent' then 'Error' else 'KeepLast',
  'for': std.get(alert, 'for', '0s'),
  keepFiringFor: alert.keep_firing_for,
  labels: alert.labels,
  // The dollars so far are left out: Grafana's templates cannot ask Prometheus for them.
  annotations: { [name]: said(alert.annotations[name]) for name in std.objectFields(alert.annotations) if name != 'turn_spend' },
  isPaused: false,
};

{
  grafanaAlerts::
    local config = $._config;
    // Grafana's rules cannot count on recording rules: those would be Prometheus' own.
    local spelledOut = if config.recordingRules then $ { _config+:: { recordingRules: false } } else $;
    local groups = spelledOut.prometheusAlerts.groups;
    {
      apiVersion: 1,
      groups: [
        {
          orgId: 1,
          name: group.name,
          folder: 'Agents (' + severity + ')',
          interval: '1m',
          rules: rules,
        }
        for severity in ['critical', 'warning', 'info']
        for group in groups
        for rules in [[rule(config, alert) for alert in group.rules if alert.labels.severity == severity]]
        if rules != []
      ],
    },
}
