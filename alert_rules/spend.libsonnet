// Money: one turn's, the present rate, the growth from week to week, and what cannot be priced.
function(config, q)
  local ofAgent = ['agent'];
  local limit(key, severity) = 'limit ' + q.number(config.thresholds[key][severity]) + ' USD unless set for this agent';
  local alert(name, severity, own) = {
    alert: name,
    severity: severity,
    filledIn: ofAgent,
    dashboard: 'turnwatch-spend',
  } + own;
  local bothSeverities(name, own) = [alert(name, severity, own(severity)) for severity in ['critical', 'warning']];

  bothSeverities('AgentTurnSpendHigh', function(severity) {
    expr: q.above('agent_turn_spend_usd_max', ofAgent, 'turnSpendUsd', severity),
    summary: 'A single turn of an agent has cost too much.',
    description:
      'A turn of agent {{ $labels.agent }}, still open or ended in the last ' + config.window
      + ', has cost {{ printf "%.2f" $value }} USD, sub-agents included (' + limit('turnSpendUsd', severity) + ').',
  })

  + bothSeverities('AgentSpendRateHigh', function(severity) {
    expr: q.eachScope('spendUsdPerHour', severity, function(matchers, threshold)
      q.sum(ofAgent, 'rate(' + q.metric('agent_spend_usd_total', matchers) + '[15m])') + ' * 3600 > ' + threshold),
    summary: 'An agent spends money much faster than it should.',
    description:
      'Agent {{ $labels.agent }} spends {{ printf "%.2f" $value }} USD an hour at the rate of the last 15m ('
      + limit('spendUsdPerHour', severity) + ').',
  })

  + [
    alert('AgentSpendGrowth', 'warning', {
      // Two days against the same two of the week before: weekends and working days meet their like, and the second
      // week can already be judged. Then, in this order: it must be worth a message; the two days of the week before must
      // have been watched from their start, or a new agent's first week would look like growth; and two weeks before
      // it must have been less too, or every holiday would be followed by growth.
      expr: q.eachScope('spendGrowthRatio', null, function(matchers, threshold)
        local spent(offset='') =
          if config.recordingRules
          then q.recorded('agent:agent_spend_usd:increase2d' + (if offset == '' then '' else '_offset' + offset), matchers)
          else q.grown('agent_spend_usd_total', ofAgent, matchers, '2d', offset);
        local watched = q.metric('agent_spend_usd_total', matchers);
        spent() + '\n/\n' + spent('1w') + ' > ' + threshold
        + '\nand ' + spent() + ' > ' + config.minimum.growthUsd
        + '\nand ' + q.sum(ofAgent, 'count_over_time(' + watched + '[1d] offset 9d)') + ' > 0'
        + '\nunless ' + spent() + ' / ' + spent('2w') + ' <= ' + threshold),
      // A weekly job that runs an hour later than last week moves over the edge of the two days for an hour.
      pendingFor: '6h',
      summary: 'An agent spends several times what it spent a week ago.',
      description:
        'Agent {{ $labels.agent }} has spent {{ printf "%.1f" $value }} times in the last two days what it spent on '
        + 'the same days a week earlier (limit ' + q.number(config.thresholds.spendGrowthRatio) + ' unless set for this agent).',
    }),

    alert('AgentUnpricedModel', 'warning', {
      expr: q.rose('agent_unpriced_model_calls_total', ['model'], bornLate=true),
      filledIn: ['model'],
      summary: 'A model without a known price is in use, so spend is understated.',
      description:
        'Model {{ $labels.model }} has no known price: {{ printf "%.0f" $value }} calls in the last ' + config.window
        + ' count as no dollars, and no spend limit sees them.',
    }),
  ]
