// Is any agent stuck, and what does it cost? The page for the wall.
local queries = import 'lib/query.libsonnet';
local sharedPanels = import 'lib/shared.libsonnet';

function(config)
  local q = queries(config);
  local shared = sharedPanels(config);
  local ours = 'alertname=~"Agent.+"';
  local agentAlerts = [ours, 'severity=~"critical|warning"'];
  {
    uid: 'turnwatch-overview',
    title: 'Agents / Fleet overview',
    description: 'Whether any LLM agent is stuck, and what the fleet spends.',
    variables: ['job', 'agent'],
    rows: [
      {
        title: 'Now',
        panels: [
          shared.number {
            title: 'Alerts firing',
            description: 'Alerts about agents that are firing now, warnings and critical ones.',
            limits: { critical: 1 },
            queries: { Firing: 'count(' + q.firing(agentAlerts) + ') or vector(0)' },
          },
          shared.worstRepetition,
          shared.longestTurn,
          shared.dearestTurn,
          shared.spendPerHour,
          shared.openTurns,
        ],
      },
      {
        title: 'Alerts',
        panels: [
          {
            kind: 'times',
            title: 'Firing alerts',
            description: 'When which alert fired for which agent: warnings orange, critical ones red.',
            unit: 'short',
            width: 24,
            height: 6,
            links: [{
              title: 'Runbook of ${__field.labels.alertname}',
              url: config.runbookBaseUrl + '/${__field.labels.alertname}.md',
              targetBlank: true,
            }],
            queries: {
              '{{alertname}} {{agent}} {{tool}}': q.max(
                q.firing([ours, 'severity="warning"']) + ' or ' + q.firing([ours, 'severity="critical"']) + ' * 2',
                ['alertname', 'agent', 'tool']
              ),
            },
          },
        ],
      },
      {
        title: 'Repetition',
        panels: [shared.identicalCalls, shared.staleCalls, shared.repeatResults],
      },
      {
        title: 'Turns and conversations',
        panels: [shared.turnsEnded, shared.longestTurns, shared.longestConversations],
      },
      {
        title: 'Spend',
        panels: [panel { width: 12 } for panel in [shared.spendByAgent, shared.wasteByAgent]],
      },
    ],
  }
