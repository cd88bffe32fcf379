// Which tools do agents call, do they work, and how fast?
local queries = import 'lib/query.libsonnet';
local sharedPanels = import 'lib/shared.libsonnet';

function(config)
  local q = queries(config);
  local shared = sharedPanels(config);
  local ofTool = ['agent', 'tool'];
  local calls = q.ofTool('agent_tool_calls_total');
  local failed = q.ofTool('agent_tool_calls_total', ['outcome="error"']);
  {
    uid: 'turnwatch-tools',
    title: 'Agents / Tools',
    description: 'Calls, errors, latency and repeats of each tool.',
    variables: ['job', 'agent', 'tool'],
    from: 'now-1h',
    rows: [
      {
        title: 'Now',
        panels: [
          shared.number { title: 'Calls', description: 'Tool calls a minute.', unit: 'cpm', width: 6, queries: { Calls: q.perMinute(calls) } },
          shared.number {
            title: 'Errors',
            description: 'Share of tool calls that fail.',
            unit: 'percentunit',
            width: 6,
            limits: config.thresholds.toolErrorShare,
            queries: { Errors: q.share(failed, calls) },
          },
          shared.number {
            title: 'Calls of a turn',
            description: 'Tool calls of a turn on average. Turns of all tools.',
            decimals: 1,
            width: 6,
            queries: { Calls: q.average(q.ofAgent, 'agent_turn_tool_calls') },
          },
          shared.number {
            title: 'Repeated',
            description: 'Share of tool calls that repeat an earlier call of their turn.',
            unit: 'percentunit',
            width: 6,
            queries: { Repeated: q.share(q.ofTool('agent_repeat_results_total'), calls) },
          },
        ],
      },
      {
        title: 'Calls',
        panels: [
          {
            kind: 'trend',
            title: 'Calls by tool',
            description: 'Tool calls a minute.',
            unit: 'cpm',
            stacked: true,
            queries: { '{{tool}}': q.perMinute(calls, ['tool']) },
          },
          {
            kind: 'trend',
            title: 'Calls by outcome',
            description: 'Tool calls a minute: answered, failed, served from a cache, refused by a guard.',
            unit: 'cpm',
            stacked: true,
            queries: { '{{outcome}}': q.perMinute(calls, ['outcome']) },
          },
          {
            kind: 'ranking',
            title: 'Most called',
            description: 'Calls over the time shown, the six largest.',
            unit: 'short',
            decimals: 0,
            queries: { '{{agent}} · {{tool}}': 'topk(6, ' + q.grown(calls, ofTool) + ' > 0)' },
          },
        ],
      },
      {
        title: 'Errors and latency',
        panels: [
          {
            kind: 'trend',
            title: 'Errors by tool',
            points: 75,
            description: 'Share of the calls that fail, the ten largest. The dashed lines are the alert thresholds.',
            unit: 'percentunit',
            max: 1,
            limits: config.thresholds.toolErrorShare,
            queries: {
              '{{agent}} · {{tool}}': 'topk(10, ' + (
                if config.recordingRules
                then q.max(q.recorded('agent_tool:agent_tool_calls:error_share_rate5m', ofTool), ofTool)
                else q.share(failed, calls, ofTool)
              ) + ' > 0)',
            },
          },
          {
            kind: 'trend',
            title: 'Latency by tool',
            points: 40,
            description: 'Nineteen calls in twenty take less' + (if config.recordingRules then ': of the agent where the tool is slowest.' else '.'),
            unit: 's',
            queries:
              if config.recordingRules
              then { '{{tool}} p95': q.max(q.recorded('agent_tool:agent_tool_call_duration_seconds:p95_rate5m', ofTool), ['tool']) }
              else q.quantiles(q.ofTool('agent_tool_call_duration_seconds_bucket'), ['tool'], ['95']),
          },
          {
            kind: 'distribution',
            title: 'Latency of all calls',
            description: 'How many calls took how long' + (if config.recordingRules then ', of all tools.' else '.'),
            unit: 's',
            queries: {
              '{{le}}':
                if config.recordingRules
                then q.sum(q.recorded('agent_le:agent_tool_call_duration_seconds_bucket:rate5m', ['agent']), ['le'])
                else q.rate(q.ofTool('agent_tool_call_duration_seconds_bucket'), ['le']),
            },
          },
        ],
      },
      {
        title: 'Calls of a turn',
        panels: [
          {
            kind: 'trend',
            title: 'Tool calls of a turn',
            description: 'On average, by agent. A multiple of the day before is an alert. Turns of all tools.',
            unit: 'short',
            queries: { '{{agent}}': q.average(q.ofAgent, 'agent_turn_tool_calls', ['agent']) },
          },
          {
            kind: 'trend',
            title: 'Most tool calls in one turn',
            description: 'Of one turn that was active in the last ' + config.window + '.',
            unit: 'short',
            queries: { '{{agent}}': q.max(q.ofAgent('agent_turn_tool_calls_max'), ['agent']) },
          },
          shared.repeatResults { queries: { '{{result}}': q.perMinute(q.ofTool('agent_repeat_results_total'), ['result']) } },
        ],
      },
    ],
  }
