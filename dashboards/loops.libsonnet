// Which agent loops on which tool, since when, and what does it cost?
local queries = import 'lib/query.libsonnet';
local sharedPanels = import 'lib/shared.libsonnet';

function(config)
  local q = queries(config);
  local shared = sharedPanels(config);
  local ofTool = ['agent', 'tool'];
  local loopAlerts = ['agent=~"$agent"', 'alertname=~"AgentDuplicateToolCalls|AgentLoopDetected"'];
  local verdicts = q.ofTool('agent_loops_detected_total');
  local duplicates = q.happened(q.ofTool('agent_duplicate_tool_calls_total'), ofTool);
  {
    uid: 'turnwatch-loops',
    title: 'Agents / Loop triage',
    description: 'Which agent repeats itself, with which tool, since when, and what that has cost.',
    variables: ['job', 'agent', 'tool'],
    from: 'now-1h',
    rows: [
      {
        title: 'Now',
        panels: [
          shared.worstRepetition { queries: { 'Identical calls': q.max(q.ofTool('agent_turn_identical_calls_max')) } },
          shared.number {
            title: 'Worst stale repetition',
            description: 'Largest number of identical calls with the same result while nothing changed. More than '
                         + config.thresholds.identicalCalls + ' pages.',
            limits: shared.past({ critical: config.thresholds.identicalCalls }),
            queries: { 'Stale calls': q.max(q.ofTool('agent_turn_stale_calls_max')) },
          },
          shared.number {
            title: 'Stuck verdicts',
            description: 'Turns that the loop engine found stuck, over the time shown.',
            limits: { critical: 1 },
            decimals: 0,
            queries: { Stuck: q.happened(q.ofTool('agent_loops_detected_total', ['severity="stuck"'])) },
          },
          shared.number {
            title: 'Wasted tool calls',
            description: 'Tool calls made after a turn was found to be stuck, over the time shown.',
            limits: { warning: 1 },
            decimals: 0,
            queries: { Calls: q.happened(q.ofTool('agent_wasted_tool_calls_total')) },
          },
          shared.wasted,
          shared.spendPerHour,
        ],
      },
      {
        title: 'Who, and since when',
        panels: [
          {
            kind: 'rows',
            title: 'Agents that repeat themselves',
            description: 'Each agent and tool with repeated calls: how many in one turn, how many past the threshold over the time shown, what the agent has wasted, and since when an alert has been firing.',
            unit: 'short',
            width: 24,
            rows: ['agent', 'tool'],
            columnsInOrder: [
              {
                name: 'Stale calls',
                unit: 'short',
                limits: shared.past({ critical: config.thresholds.identicalCalls }),
                expr: q.max(q.ofTool('agent_turn_stale_calls_max') + ' > 1', ofTool),
              },
              {
                name: 'Identical calls',
                unit: 'short',
                limits: shared.past({ warning: config.thresholds.identicalCalls }),
                expr: q.max(q.ofTool('agent_turn_identical_calls_max') + ' > 1', ofTool),
              },
              { name: 'Duplicates', unit: 'short', expr: duplicates },
              { name: 'Wasted calls', unit: 'short', expr: q.happened(q.ofTool('agent_wasted_tool_calls_total'), ofTool) },
              {
                name: 'Wasted by agent',
                unit: 'currencyUSD',
                expr: q.happened(q.ofAgent('agent_wasted_usd_total'), ['agent']) + ' + on (agent) group_right () 0 * ' + duplicates,
              },
              {
                name: 'Firing since',
                unit: 'dateTimeFromNow',
                expr: 'min by (agent, tool) (' + q.ofJob('ALERTS_FOR_STATE', loopAlerts) + ') * 1000',
              },
            ],
          },
        ],
      },
      {
        title: 'How it went',
        panels: [
          shared.identicalCalls { width: 12, queries: { '{{agent}} · {{tool}}': q.max(q.ofTool('agent_turn_identical_calls_max') + ' > 1', ofTool) } },
          shared.staleCalls { width: 12, queries: { '{{agent}} · {{tool}}': q.max(q.ofTool('agent_turn_stale_calls_max') + ' > 1', ofTool) } },
          {
            kind: 'events',
            title: 'Duplicate calls',
            description: 'Tool calls past the threshold of identical calls in their turn, near each point.',
            unit: 'short',
            exemplars: true,
            queries: { '{{agent}} · {{tool}}': q.events(q.ofTool('agent_duplicate_tool_calls_total'), ofTool) },
          },
          shared.repeatResults { queries: { '{{result}}': q.perMinute(q.ofTool('agent_repeat_results_total'), ['result']) } },
          {
            kind: 'events',
            title: 'Verdicts',
            description: 'Verdicts of the loop engine by shape and severity, near each point.',
            unit: 'short',
            queries: { '{{kind}} · {{severity}}': q.events(verdicts, ['kind', 'severity']) },
          },
        ],
      },
      {
        title: 'What it costs',
        panels: [
          shared.wasteByAgent,
          {
            kind: 'events',
            title: 'Wasted tool calls',
            description: 'Tool calls made after a turn was found to be stuck, near each point.',
            unit: 'short',
            queries: { '{{agent}} · {{tool}}': q.events(q.ofTool('agent_wasted_tool_calls_total'), ofTool) },
          },
          {
            kind: 'trend',
            title: 'Repetition over a conversation',
            description: 'Largest number of identical tool calls over the turns of one conversation that was active in the last '
                         + config.window + '. From the dashed line on it is an alert.',
            unit: 'short',
            limits: shared.past({ warning: config.thresholds.conversationIdenticalCalls }),
            queries: { '{{agent}}': q.max(q.ofAgent('agent_conversation_identical_calls_max'), ['agent']) },
          },
        ],
      },
    ],
  }
