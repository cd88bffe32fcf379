// A dashboard from its rows. Everything that all dashboards share is set here, once.
local palette = import 'palette.libsonnet';
local panel = import 'panel.libsonnet';

local datasource = { type: 'prometheus', uid: '${datasource}' };

// Each variable, and the series that its values are read from. Narrowed by the ones before it.
local targets = '{__name__=~"turnwatch_build_info|agent_open_turns"';
local narrowed(labels) = std.join('', [', ' + label + '=~"$' + label + '"' for label in labels]);
local sources(above) = {
  job: targets + narrowed(above) + '}',
  agent: 'agent_open_turns{' + narrowed(above + ['job'])[2:] + '}',
  tool: 'agent_tool_calls_total{' + narrowed(above + ['job', 'agent'])[2:] + '}',
  model: 'agent_model_calls_total{' + narrowed(above + ['job', 'agent'])[2:] + '}',
} + { [above[i]]: targets + narrowed(above[:i]) + '}' for i in std.range(0, std.length(above) - 1) };

local variable(name, above) = {
  local values = 'label_values(' + sources(above)[name] + ', ' + name + ')',

  type: 'query',
  name: name,
  label: std.asciiUpper(name[0]) + name[1:],
  datasource: datasource,
  definition: values,
  query: { qryType: 1, query: values, refId: 'variable-' + name },
  refresh: 2,
  sort: 1,
  multi: true,
  includeAll: true,
  // Who runs one cluster has no such label.
  allValue: if std.member(above, name) then '.*' else '.+',
  current: { selected: true, text: ['All'], value: ['$__all'] },
};

local chooseDatasource = {
  type: 'datasource',
  name: 'datasource',
  label: 'Data source',
  query: 'prometheus',
  refresh: 1,
  multi: false,
  includeAll: false,
  current: {},
};

// When alerts fired. An alert about a whole job has no agent, so agents are not filtered here.
local firing(name, severity, shown, above) = {
  name: name,
  datasource: datasource,
  enable: shown,
  hide: false,
  iconColor: palette[severity],
  expr: 'max by (alertname, agent, tool) (ALERTS{' + narrowed(above + ['job'])[2:] + ', alertname=~"Agent.+", alertstate="firing", severity="' + severity + '"})',
  step: '30s',
  titleFormat: '{{alertname}}',
  textFormat: '{{agent}} {{tool}}',
  tagKeys: 'agent,tool',
};

local width(spec) = std.get(spec, 'width', 8);
local height(spec) = std.get(spec, 'height', if spec.kind == 'rows' then 6 else 9);

// Left to right, and down when a row of 24 columns is full.
local placed(state, spec) =
  local wraps = state.x + width(spec) > 24;
  local x = if wraps then 0 else state.x;
  local y = if wraps then state.bottom else state.y;
  {
    x: x + width(spec),
    y: y,
    bottom: std.max(state.bottom, y + height(spec)),
    id: state.id + 1,
    panels: state.panels + [panel(spec) { id: state.id, gridPos: { x: x, y: y, w: width(spec), h: height(spec) } }],
  };

local rowOf(state, row) =
  local heading = {
    id: state.id,
    type: 'row',
    title: row.title,
    collapsed: false,
    panels: [],
    gridPos: { x: 0, y: state.bottom, w: 24, h: 1 },
  };
  local below = {
    x: 0,
    y: state.bottom + 1,
    bottom: state.bottom + 1,
    id: state.id + 1,
    panels: state.panels + [heading],
  };
  std.foldl(placed, row.panels, below);

function(spec) {
  uid: spec.uid,
  title: spec.title,
  description: spec.description,
  tags: ['turnwatch', 'llm-agents'],
  editable: false,
  graphTooltip: 1,
  refresh: '30s',
  schemaVersion: 39,
  time: { from: std.get(spec, 'from', 'now-3h'), to: 'now' },
  timezone: 'browser',
  weekStart: '',
  links: [{
    type: 'dashboards',
    title: 'turnwatch',
    tags: ['turnwatch'],
    asDropdown: true,
    includeVars: true,
    keepTime: true,
    targetBlank: false,
    icon: 'external link',
    tooltip: 'The other dashboards of turnwatch',
    url: '',
  }],
  templating: { list: [chooseDatasource] + [variable(name, spec.above) for name in spec.above + spec.variables] },
  // What pages is drawn over every panel; warnings are a click away, or a fleet's would hide its lines.
  annotations: { list: [firing('Critical alerts', 'critical', true, spec.above), firing('Warnings', 'warning', false, spec.above)] },
  panels: std.foldl(
    rowOf,
    [row { panels: [{ palette: spec.palette } + panel for panel in row.panels] } for row in spec.rows],
    { bottom: 0, id: 1, panels: [] }
  ).panels,
}
