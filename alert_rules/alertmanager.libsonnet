// An Alertmanager file to start from: who is told, and what is not said twice.
//
// Routes and inhibition go to Alertmanager; alert rules go to Prometheus. Merge this into your own file when you have
// one: the route below `routes`, and the inhibition rules.
local agentAlerts = 'alertname=~"Agent.+"';
local loopAlerts = 'alertname=~"AgentDuplicateToolCalls|AgentLoopDetected"';
local alertsThatALoopRaises =
  'alertname=~"AgentConversationRunaway|AgentIterationsHigh|AgentToolCallsPerTurnSpike|AgentTurn(Tokens|Latency)High|AgentTurnStuckOpen"';
local title = '{{ template "turnwatch.title" . }}';
local text = '{{ template "turnwatch.text" . }}';
local webhook(path) = { url: 'http://127.0.0.1:8080/agents/' + path, send_resolved: true };

{
  local keptApart = $._config.aggregationLabels,
  local sameAgent = keptApart + ['agent'],

  alertmanagerConfig:: {
    route: {
      receiver: 'unrouted',
      routes: [
        {
          matchers: [agentAlerts],
          receiver: 'agents-chat',
          // One notification an agent, whatever its jobs: a stuck turn trips several alerts at once.
          group_by: [label for label in sameAgent if label != 'job'],
          // A loop spends by the second, so do not wait long for company.
          group_wait: '10s',
          group_interval: '1m',
          repeat_interval: '4h',
          routes: [
            { matchers: ['severity="critical"'], receiver: 'agents-page' },
            { matchers: ['severity="info"'], receiver: 'unrouted' },
          ],
        },
      ],
    },

    inhibit_rules: [
      // The warning says nothing that the critical alert of the same thing does not.
      {
        source_matchers: [agentAlerts, 'severity="critical"'],
        target_matchers: [agentAlerts, 'severity=~"warning|info"'],
        equal: ['alertname', 'tool', 'model'] + sameAgent,
      },
      // A loop is seen by its calls and by its verdict: one page is enough.
      {
        source_matchers: [loopAlerts, 'severity="critical"'],
        target_matchers: [loopAlerts, 'severity=~"warning|info"'],
        equal: ['tool'] + sameAgent,
      },
      // A turn that is stuck also takes too many iterations, calls and tokens, and too long, and its calls count for its
      // conversation. That is the same page. What the turn costs is not, so the spend alerts still come.
      {
        source_matchers: [loopAlerts, 'severity="critical"'],
        target_matchers: [alertsThatALoopRaises],
        equal: sameAgent,
      },
    ],

    // What is written in <angle brackets> or as example.com is yours to fill in. Secrets stand in files of their own.
    templates: ['turnwatch.tmpl'],

    receivers: [
      { name: 'unrouted' },
      {
        name: 'agents-chat',
        slack_configs: [{
          api_url_file: '/etc/alertmanager/secrets/slack-webhook-url',
          channel: '#agents',
          send_resolved: true,
          title: title,
          title_link: '{{ (index .Alerts 0).Annotations.dashboard_url }}',
          text: text,
          color: '{{ if eq .Status "firing" }}warning{{ else }}good{{ end }}',
        }],
        webhook_configs: [webhook('chat')],
      },
      {
        name: 'agents-page',
        pagerduty_configs: [{
          routing_key_file: '/etc/alertmanager/secrets/pagerduty-routing-key',
          send_resolved: true,
          severity: 'critical',
          description: title,
          details: { alerts: text },
          links: [
            { href: '{{ (index .Alerts 0).Annotations.runbook_url }}', text: 'Runbook' },
            { href: '{{ (index .Alerts 0).Annotations.dashboard_url }}', text: 'Dashboard' },
          ],
        }],
        email_configs: [{
          to: 'on-call@example.com',
          from: 'alertmanager@example.com',
          smarthost: 'smtp.example.com:587',
          auth_username: 'alertmanager@example.com',
          auth_password_file: '/etc/alertmanager/secrets/smtp-password',
          send_resolved: true,
          headers: { Subject: title },
          text: text,
          html: '<pre>' + text + '</pre>',
        }],
        webhook_configs: [webhook('page')],
      },
    ],
  },
}
