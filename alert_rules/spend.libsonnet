// Money: one turn's, the present rate, and what cannot be priced.
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
    alert('AgentUnpricedModel', 'warning', {
      expr: q.rose('agent_unpriced_model_calls_total', ['model'], bornLate=true),
      filledIn: ['model'],
      summary: 'A model without a known price is in use, so spend is understated.',
      description:
        'Model {{ $labels.model }} has no known price: {{ printf "%.0f" $value }} calls in the last ' + config.window
        + ' count as no dollars, and no spend limit sees them.',
    }),
  ]
