// An Alertmanager file to start from: who is told, and what is not said twice.
//
// Routes and inhibition go to Alertmanager; alert rules go to Prometheus. Merge this into your own file when you have
// one: the route below `routes`, and the inhibition rules.
local agentAlerts = 'alertname=~"Agent.+"';
local sameAgent = ['cluster', 'namespace', 'job', 'agent'];

{
  alertmanagerConfig:: {
    route: {
      receiver: 'unrouted',
      routes: [
        {
          matchers: [agentAlerts],
          receiver: 'agents-chat',
          // One notification an agent: a stuck turn trips several alerts at once.
          group_by: ['cluster', 'namespace', 'agent'],
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
      // A turn that is stuck also takes too many iterations, calls and tokens, and too long. That is the same page. What it
      // costs is not, so the spend alerts still come.
      {
        source_matchers: ['alertname=~"AgentDuplicateToolCalls|AgentLoopDetected"', 'severity="critical"'],
        target_matchers: ['alertname=~"AgentIterationsHigh|AgentToolCallsPerTurnSpike|AgentTurn(Tokens|Latency)High|AgentTurnStuckOpen"'],
        equal: sameAgent,
      },
    ],

    receivers: [
      { name: 'unrouted' },
      {
        name: 'agents-chat',
        webhook_configs: [{ url: 'http://127.0.0.1:8080/agents/chat', send_resolved: true }],
      },
      {
        name: 'agents-page',
        webhook_configs: [{ url: 'http://127.0.0.1:8080/agents/page', send_resolved: true }],
      },
    ],
  },
}
