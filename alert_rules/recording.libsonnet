// What recording rules work out once a minute, so that nobody has to look so far back, or over so many buckets, again:
// rules by the group that they stand in. Left out unless `recordingRules` is true.
function(config, q)
  local spent(offset) = {
    record: 'agent:agent_spend_usd:increase2d' + (if offset == '' then '' else '_offset' + offset),
    expr: q.grown('agent_spend_usd_total', ['agent'], [], '2d', offset),
  };
  local calls(only=[]) = q.sum(['agent', 'tool'], 'rate(' + q.metric('agent_tool_calls_total', only) + '[5m])');
  local latency(labels) =
    q.sum(labels + ['le'], 'rate(' + q.metric('agent_tool_call_duration_seconds_bucket') + '[5m])');
  {
    // Before the alert that reads them, so that it reads what was written a moment ago.
    'turnwatch-growth': [spent(offset) for offset in ['', '1w', '2w']],
    'turnwatch-by-tool': [
      {
        record: 'agent_tool:agent_tool_calls:error_share_rate5m',
        expr: calls(['outcome="error"']) + ' / (' + calls() + ' > 0)',
      },
      {
        record: 'agent_tool:agent_tool_call_duration_seconds:p95_rate5m',
        expr: 'histogram_quantile(0.95, ' + latency(['agent', 'tool']) + ')',
      },
      { record: 'agent_le:agent_tool_call_duration_seconds_bucket:rate5m', expr: latency(['agent']) },
    ],
  }
