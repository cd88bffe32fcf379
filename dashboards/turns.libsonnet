// How long are turns, what do they take, and how do they end?
local queries = import 'lib/query.libsonnet';
local sharedPanels = import 'lib/shared.libsonnet';

function(config)
  local q = queries(config);
  local shared = sharedPanels(config);
  {
    uid: 'turnwatch-turns',
    title: 'Agents / Turns',
    description: 'Iterations, duration, calls and stop reasons of turns, and the conversations they belong to.',
    variables: ['job', 'agent', 'model'],
    from: 'now-1h',
    rows: [
      {
        title: 'Now',
        panels: [
          shared.openTurns,
          shared.number {
            title: 'Oldest open turn',
            description: 'Time since the oldest open turn began.',
            unit: 's',
            limits: config.thresholds.openTurnSeconds,
            queries: { Age: q.max(q.ofAgent('agent_open_turn_age_seconds_max')) },
          },
          shared.longestTurn,
          shared.number {
            title: 'Most tokens',
            description: 'Most tokens of one turn that was active in the last ' + config.window + ', sub-agents included.',
            limits: config.thresholds.turnTokens,
            queries: { Tokens: q.max(q.ofAgent('agent_turn_tokens_max')) },
          },
          shared.dearestTurn,
          shared.number {
            title: 'Stopped by guards',
            description: 'Turns that a guard stopped, over the time shown.',
            limits: { warning: 1 },
            decimals: 0,
            queries: { Stopped: q.happened(q.ofAgent('agent_guard_stops_total')) },
          },
        ],
      },
      {
        title: 'Iterations',
        panels: [
          {
            kind: 'trend',
            title: 'Iterations of a turn',
            points: 75,
            description: 'Model calls: half of the turns take fewer than p50, nineteen in twenty fewer than p95.',
            unit: 'short',
            exemplars: true,
            queries: q.quantiles(q.ofAgent('agent_iterations_bucket'), ['agent']),
          },
          {
            kind: 'distribution',
            title: 'Iterations of all turns',
            description: 'How many turns took how many model calls.',
            unit: 'short',
            queries: { '{{le}}': q.rate(q.ofAgent('agent_iterations_bucket'), ['le']) },
          },
          shared.longestTurns,
        ],
      },
      {
        title: 'Duration',
        panels: [
          {
            kind: 'trend',
            title: 'Duration of a turn',
            points: 75,
            description: 'Half of the turns take less than p50, nineteen in twenty less than p95.',
            unit: 's',
            exemplars: true,
            queries: q.quantiles(q.ofAgent('agent_turn_duration_seconds_bucket'), ['agent']),
          },
          {
            kind: 'trend',
            title: 'Duration of a model call',
            points: 75,
            description: 'Nineteen calls in twenty take less.',
            unit: 's',
            queries: q.quantiles(q.ofModel('agent_model_call_duration_seconds_bucket'), ['model'], ['95']),
          },
          {
            kind: 'trend',
            title: 'Model calls by outcome',
            description: 'Model calls a minute.',
            unit: 'cpm',
            stacked: true,
            queries: { '{{outcome}}': q.perMinute(q.ofModel('agent_model_calls_total'), ['outcome']) },
          },
        ],
      },
      {
        title: 'How turns end',
        panels: [
          shared.turnsEnded,
          {
            kind: 'events',
            title: 'Stopped by guards',
            description: 'Turns that guards stopped, and those that they would have stopped if they were allowed to (shadow), near each point.',
            unit: 'short',
            queries: {
              'stopped: {{stop_reason}}': q.events(q.ofAgent('agent_guard_stops_total'), ['stop_reason']),
              'shadow: {{stop_reason}}': q.events(q.ofAgent('agent_guard_shadow_stops_total'), ['stop_reason']),
            },
          },
          {
            kind: 'trend',
            title: 'Goals at the end of turns',
            description: 'Goal checks by verdict. Empty where no goal is checked.',
            unit: 'cpm',
            stacked: true,
            queries: { '{{verdict}}': q.perMinute(q.ofAgent('agent_goal_checks_total'), ['verdict']) },
          },
        ],
      },
      {
        title: 'Conversations and limits',
        panels: [
          shared.longestConversations,
          shared.dearestConversations,
          {
            kind: 'events',
            title: 'Turns past the iteration limit',
            description: 'Counted once a turn, while it still runs, near each point.',
            unit: 'short',
            queries: { '{{agent}}': q.events(q.ofAgent('agent_iteration_limit_exceeded_total'), ['agent']) },
          },
        ],
      },
    ],
  }
