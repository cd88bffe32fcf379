// Does turnwatch itself see everything?
local queries = import 'lib/query.libsonnet';
local sharedPanels = import 'lib/shared.libsonnet';

function(config)
  local q = queries(config);
  local shared = sharedPanels(config);
  // A counter of what went wrong or through, by one label.
  local counted(title, description, counter, label) = {
    kind: 'trend',
    title: title,
    description: description,
    unit: 'cpm',
    queries: { [if label == '' then title else '{{' + label + '}}']: q.perMinute(q.ofJob(counter), if label == '' then [] else [label]) },
  };
  // The same of what ought not to happen.
  local lost(title, description, counter, label) = counted(title, description + ' Near each point.', counter, label) {
    kind: 'events',
    unit: 'short',
    queries: { [legend]: q.events(q.ofJob(counter), if label == '' then [] else [label]) for legend in std.objectFields(super.queries) },
  };
  {
    uid: 'turnwatch-self',
    title: 'Agents / turnwatch itself',
    description: 'Whether turnwatch runs, sees every call, and loses nothing.',
    variables: ['job'],
    rows: [
      {
        title: 'Now',
        panels: [
          shared.number { title: 'Processes watched', description: 'Targets that export agent metrics.', width: 6, queries: { Targets: 'count(' + q.ofJob('turnwatch_build_info') + ')' } },
          shared.number {
            title: 'Targets down',
            description: 'Targets of these jobs that do not answer.',
            width: 6,
            limits: { critical: 1 },
            queries: { Down: 'count(' + q.ofJob('up') + ' == 0) or vector(0)' },
          },
          shared.number {
            title: 'Internal errors',
            description: 'Errors inside turnwatch that were kept from the agent, over the time shown, and settings that are wrong and left out.',
            width: 6,
            limits: { warning: 1 },
            decimals: 0,
            queries: {
              Errors: q.happened(q.ofJob('turnwatch_internal_errors_total')),
              'Settings left out': q.max(q.ofJob('turnwatch_settings_faults')),
            },
          },
          shared.number {
            title: 'Judged in full',
            description: 'Of the turns with tool calls over the time shown: the share whose results the loop engine saw, not only their arguments.',
            unit: 'percentunit',
            width: 6,
            queries: { Share: q.grown(q.ofJob('agent_turns_judged_total', ['mode="full"'])) + ' / (' + q.grown(q.ofJob('agent_turns_judged_total', ['mode!="none"'])) + ' > 0)' },
          },
        ],
      },
      {
        title: 'What it sees',
        panels: [
          counted('Turns judged', 'Turns by how much of them the loop engine could see: arguments and results, arguments only, nothing (or no tool call).', 'agent_turns_judged_total', 'mode') { stacked: true },
          counted('Spans read', 'Spans by what became of them.', 'turnwatch_spans_total', 'outcome') { stacked: true },
          counted('Calls without arguments', 'Tool calls whose arguments the source did not carry: they cannot be compared.', 'turnwatch_fingerprint_missing_total', 'source'),
        ],
      },
      {
        title: 'What it loses',
        panels: [
          lost('Internal errors', 'Errors inside turnwatch that were kept from the agent. The log has the place.', 'turnwatch_internal_errors_total', ''),
          lost('Turns evicted', 'Turns dropped before they ended.', 'turnwatch_turns_evicted_total', 'reason'),
          lost('Label values folded', 'Samples whose agent, tool or model became __other__ because there were too many.', 'turnwatch_label_values_folded_total', 'label'),
        ],
      },
      {
        title: 'Service',
        panels: [
          counted('Export requests', 'Requests that `turnwatch serve` received, by what became of them.', 'turnwatch_requests_total', 'outcome') { stacked: true },
          counted('Passed on', 'Spans and log records passed on; for metrics, requests.', 'turnwatch_forwarded_total', 'signal'),
          lost('Not passed on', 'Spans and log records that were accepted but not passed on.', 'turnwatch_forward_dropped_total', 'reason'),
          lost('Retries', 'Attempts to pass a request on that failed and are made again.', 'turnwatch_forward_retries_total', '') { width: 12 },
          {
            kind: 'trend',
            title: 'Queue',
            description: 'How full the fullest queue of what is to be passed on is. What finds no room is dropped.',
            unit: 'percentunit',
            width: 12,
            max: 1,
            limits: { warning: 0.5, critical: 0.9 },
            queries: { Queue: q.max(q.ofJob('turnwatch_forward_queue_ratio')) },
          },
        ],
      },
      {
        title: 'Versions',
        panels: [
          {
            kind: 'rows',
            title: 'Processes',
            description: 'Each target and the version it runs.',
            unit: 'short',
            width: 24,
            rows: ['job', 'instance', 'version'],
            columnsInOrder: [{ name: 'Up', unit: 'short', expr: q.max(q.ofJob('turnwatch_build_info'), ['job', 'instance', 'version']) }],
          },
        ],
      },
    ],
  }
