// One turn goes past what a turn may take.
function(config, q)
  local severities = ['critical', 'warning'];
  local ofAgent = ['agent'];
  local aTurn = 'A turn of agent {{ $labels.agent }}, still open or ended in the last ' + config.window + ',';
  local limit(key, severity, unit='') =
    'limit ' + q.number(config.thresholds[key][severity]) + unit + ' unless set for this agent';

  local iterationsHigh(severity) = {
    alert: 'AgentIterationsHigh',
    severity: severity,
    // The counter is for workers that died before their gauge was read. It is raised at the exporter's threshold, the
    // warning's; an agent with its own number is left to the gauge, since that number may be known to the pack only.
    expr: q.anyOf(
      [q.above('agent_turn_iterations_max', ofAgent, 'iterations', severity)]
      + (
        if severity == 'warning'
        then [q.rose('agent_iteration_limit_exceeded_total', ofAgent, q.withoutOwn('iterations'))]
        else []
      )
    ),
    labelsOfSeries: ofAgent,
    dashboard: 'turnwatch-overview',
    summary: 'A turn of an agent takes far more model calls than it should.',
    description:
      aTurn + ' went past its limit of model calls (reads {{ $value | humanize }}; '
      + limit('iterations', severity) + ').',
  };

  local turnSpendHigh(severity) = {
    alert: 'AgentTurnSpendHigh',
    severity: severity,
    expr: q.above('agent_turn_spend_usd_max', ofAgent, 'turnSpendUsd', severity),
    labelsOfSeries: ofAgent,
    dashboard: 'turnwatch-overview',
    summary: 'A single turn of an agent has cost too much.',
    description:
      aTurn + ' has cost {{ printf "%.2f" $value }} USD, sub-agents included ('
      + limit('turnSpendUsd', severity, ' USD') + ').',
  };

  [iterationsHigh(severity) for severity in severities]
  + [turnSpendHigh(severity) for severity in severities]
