// What do agents cost, what for, and where is it going?
local queries = import 'lib/query.libsonnet';
local sharedPanels = import 'lib/shared.libsonnet';

function(config)
  local q = queries(config);
  local shared = sharedPanels(config);
  local limits = config.thresholds;
  local spend = q.ofModel('agent_spend_usd_total');
  local spent(offset) =
    if config.recordingRules
    then q.recorded('agent:agent_spend_usd:increase2d' + (if offset == '' then '' else '_offset' + offset), ['agent'])
    else 'increase(' + spend + '[2d]' + (if offset == '' then '' else ' offset ' + offset) + ')';
  local dollars = shared.number { unit: 'currencyUSD' };
  {
    uid: 'turnwatch-spend',
    title: 'Agents / Spend and budgets',
    description: 'Dollars by agent and model, the forecast, and what was wasted.',
    variables: ['job', 'agent', 'model'],
    from: 'now-24h',
    rows: [
      {
        title: 'Now',
        panels: [
          shared.spendPerHour { queries: { Dollars: q.perHour(spend) } },
          dollars {
            title: 'Spent',
            description: 'Dollars over the time shown.',
            queries: { Dollars: q.grown(spend) },
          },
          dollars {
            title: 'Forecast for 30 days',
            description: 'What 30 days would cost at the rate of the last day.',
            queries: { Dollars: q.sum('rate(' + spend + '[1d])') + ' * 86400 * 30' },
          },
          dollars {
            title: 'Wasted',
            description: 'Dollars spent after a turn was found to be stuck, over the time shown. All models.',
            limits: { warning: 0.01 },
            queries: { Dollars: q.happened(q.ofAgent('agent_wasted_usd_total')) },
          },
          shared.dearestTurn,
          shared.number {
            title: 'Calls without a price',
            description: 'Model calls over the time shown that count as no dollars, because nobody knows the price or the usage.',
            limits: { warning: 1 },
            decimals: 0,
            queries: {
              'No price': q.happened(q.ofModelAlone('agent_unpriced_model_calls_total')),
              'No usage': q.happened(q.ofAgent('agent_model_calls_without_usage_total')),
            },
          },
        ],
      },
      {
        title: 'Where it goes',
        panels: [
          shared.spendByAgent { queries: { '{{agent}}': q.perHour(spend, ['agent']) } },
          shared.spendByAgent { title: 'Spend per hour by model', queries: { '{{model}}': q.perHour(spend, ['model']) } },
          {
            kind: 'trend',
            title: 'Tokens by type',
            description: 'Tokens a second. Cache reads and writes are part of input, reasoning is part of output.',
            unit: 'short',
            queries: { '{{type}}': q.rate(q.ofModel('agent_tokens_total'), ['type']) },
          },
          {
            kind: 'ranking',
            title: 'Spend by agent and model',
            description: 'Dollars over the time shown, the six largest.',
            unit: 'currencyUSD',
            queries: { '{{agent}} · {{model}}': 'topk(6, ' + q.grown(spend, ['agent', 'model']) + ' > 0)' },
          },
          shared.wasteByAgent,
          {
            kind: 'trend',
            title: 'Against a week ago',
            description: 'Times the dollars of the same two days a week earlier. The dashed line is the alert threshold.',
            unit: 'none',
            whenEmpty: 'Needs nine days of data',
            // Two days change little in an hour, and each point reads all of their samples.
            points: if config.recordingRules then 150 else 12,
            limits: { warning: limits.spendGrowthRatio },
            queries: {
              '{{agent}}': q.sum(spent(''), ['agent']) + ' / ' + q.sum(spent('1w'), ['agent'])
                           + ' and ' + q.sum('count_over_time(' + spend + '[1d] offset 9d)', ['agent']) + ' > 0',
            },
          },
        ],
      },
      {
        title: 'A turn, a conversation',
        panels: [
          {
            kind: 'trend',
            title: 'Dollars of a turn',
            points: 75,
            description: 'Half of the turns cost less than p50, nineteen in twenty less than p95. Without sub-agents.',
            unit: 'currencyUSD',
            exemplars: true,
            queries: q.quantiles(q.ofAgent('agent_turn_spend_usd_bucket')),
          },
          shared.largest('Dearest turn', 'Most dollars of one turn, sub-agents included,', 'currencyUSD', 'agent_turn_spend_usd_max', 'turnSpendUsd'),
          shared.dearestConversations,
          {
            kind: 'events',
            title: 'Budget warnings',
            description: 'Turns that used half, four fifths or all of a limit, near each point.',
            unit: 'short',
            width: 12,
            queries: { '{{agent}} · {{limit}}': q.events(q.ofAgent('agent_budget_warnings_total'), ['agent', 'limit']) },
          },
          {
            kind: 'events',
            title: 'Calls without a price or usage',
            description: 'Model calls, near each point, that count as no dollars: spend is too low by whatever they cost.',
            unit: 'short',
            width: 12,
            queries: {
              'no price: {{model}}': q.events(q.ofModelAlone('agent_unpriced_model_calls_total'), ['model']),
              'no usage: {{agent}}': q.events(q.ofAgent('agent_model_calls_without_usage_total'), ['agent']),
            },
          },
        ],
      },
    ],
  }
