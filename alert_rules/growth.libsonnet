// An agent spends more from week to week. A group of its own, evaluated once a minute: it reads sixteen days.
function(config, q)
  local ofAgent = ['agent'];
  [{
    alert: 'AgentSpendGrowth',
    severity: 'warning',
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
    filledIn: ofAgent,
    dashboard: 'turnwatch-spend',
    summary: 'An agent spends several times what it spent a week ago.',
    description:
      'Agent {{ $labels.agent }} has spent {{ printf "%.1f" $value }} times in the last two days what it spent on '
      + 'the same days a week earlier (limit ' + q.number(config.thresholds.spendGrowthRatio) + ' unless set for this agent).',
  }]
