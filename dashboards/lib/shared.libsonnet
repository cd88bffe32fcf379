// Panels that stand on more than one dashboard.
local queries = import 'query.libsonnet';

function(config) {
  local q = queries(config),
  local limits = config.thresholds,
  local lately = ' over the last ' + config.window + '. ',
  local lines = 'From the dashed lines on it is an alert.',

  // A number on the top row, and the limit it turns orange at: a count is too high from one past its threshold.
  number:: { kind: 'number', unit: 'short', width: 4, height: 4 },
  past(limit):: { [severity]: limit[severity] + 1 for severity in std.objectFields(limit) },

  worstRepetition: self.number {
    title: 'Worst repetition',
    description: 'Largest number of identical tool calls within one turn' + lately + 'More than ' + limits.identicalCalls + ' is an alert.',
    limits: $.past({ warning: limits.identicalCalls }),
    queries: { 'Identical calls': q.max(q.ofAgent('agent_turn_identical_calls_max')) },
  },
  longestTurn: self.number {
    title: 'Longest turn',
    description: 'Most model calls of one turn that was active in the last ' + config.window + '.',
    limits: $.past(limits.iterations),
    queries: { Iterations: q.max(q.ofAgent('agent_turn_iterations_max')) },
  },
  dearestTurn: self.number {
    title: 'Dearest turn',
    description: 'Most dollars of one turn that was active in the last ' + config.window + ', sub-agents included.',
    unit: 'currencyUSD',
    limits: limits.turnSpendUsd,
    queries: { Dollars: q.max(q.ofAgent('agent_turn_spend_usd_max')) },
  },
  spendPerHour: self.number {
    title: 'Spend per hour',
    description: 'Dollars an hour at the present rate.',
    unit: 'currencyUSD',
    queries: { Dollars: q.perHour(q.ofAgent('agent_spend_usd_total')) },
  },
  wasted: self.number {
    title: 'Wasted',
    description: 'Dollars spent after a turn was found to be stuck, over the time shown.',
    unit: 'currencyUSD',
    limits: { warning: 0.01 },
    queries: { Dollars: q.happened(q.ofAgent('agent_wasted_usd_total')) },
  },
  openTurns: self.number {
    title: 'Open turns',
    description: 'Turns that are running now.',
    queries: { Open: q.sum(q.ofAgent('agent_open_turns')) },
  },

  identicalCalls: {
    kind: 'trend',
    title: 'Identical calls in one turn',
    description: 'Largest number of identical tool calls within one turn' + lately + 'From the dashed line on it is an alert.',
    unit: 'short',
    limits: $.past({ warning: limits.identicalCalls }),
    whenEmpty: 'No call was repeated',
    queries: { '{{agent}} · {{tool}}': q.max(q.ofAgent('agent_turn_identical_calls_max') + ' > 1', ['agent', 'tool']) },
  },
  staleCalls: {
    kind: 'trend',
    title: 'Stale calls in one turn',
    description: 'Largest number of identical calls with the same result while nothing changed in between, within one turn' + lately + 'From the dashed line on they page.',
    unit: 'short',
    limits: $.past({ critical: limits.identicalCalls }),
    whenEmpty: 'No call was repeated in vain',
    queries: { '{{agent}} · {{tool}}': q.max(q.ofAgent('agent_turn_stale_calls_max') + ' > 1', ['agent', 'tool']) },
  },
  repeatResults: {
    kind: 'trend',
    title: 'Results of repeated calls',
    points: 75,
    description: 'Whether a repeated call got the same result as the time before.',
    unit: 'cpm',
    stacked: true,
    queries: { '{{result}}': q.perMinute(q.ofAgent('agent_repeat_results_total'), ['result']) },
  },
  turnsEnded: {
    kind: 'trend',
    title: 'Turns ended',
    description: 'Turns a minute by why they ended.',
    unit: 'opm',
    stacked: true,
    queries: { '{{stop_reason}}': q.perMinute(q.ofAgent('agent_turns_total'), ['stop_reason']) },
  },
  // The largest of a gauge by agent, against its alert's thresholds.
  largest(title, what, unit, gauge, threshold): {
    kind: 'trend',
    title: title,
    description: what + ' that was active in the last ' + config.window + '. ' + lines,
    unit: unit,
    // Of whole numbers, the first one past the threshold.
    limits: if unit == 'short' then $.past(limits[threshold]) else limits[threshold],
    queries: { '{{agent}}': q.max(q.ofAgent(gauge), ['agent']) },
  },
  longestTurns: self.largest('Longest turn', 'Most model calls of one turn', 'short', 'agent_turn_iterations_max', 'iterations'),
  longestConversations: self.largest('Longest conversation', 'Most model calls of one conversation', 'short', 'agent_conversation_model_calls_max', 'conversationModelCalls'),
  dearestConversations: self.largest('Dearest conversation', 'Most dollars of one conversation', 'currencyUSD', 'agent_conversation_spend_usd_max', 'conversationSpendUsd'),
  spendByAgent: {
    kind: 'trend',
    title: 'Spend per hour by agent',
    description: 'Dollars an hour at the rate of the moment.',
    unit: 'currencyUSD',
    stacked: true,
    queries: { '{{agent}}': q.perHour(q.ofAgent('agent_spend_usd_total'), ['agent']) },
  },
  wasteByAgent: {
    kind: 'trend',
    title: 'Wasted per hour by agent',
    description: 'Dollars an hour spent after a turn was found to be stuck.',
    unit: 'currencyUSD',
    stacked: true,
    queries: { '{{agent}}': q.perHour(q.ofAgent('agent_wasted_usd_total'), ['agent']) },
  },
}
