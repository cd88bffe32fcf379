// A dashboard from its rows. Everything that all dashboards share is set here, once.
local palette = import 'palette.libsonnet';
local panel = import 'panel.libsonnet';

local datasource = { type: 'prometheus', uid: '${datasource}' };

// Each variable, and the series that its values are read from. Narrowed by the ones before it.
local sources = {
  job: '{__name__=~"turnwatch_build_info|agent_open_turns"}',
  agent: 'agent_open_turns{job=~"$job"}',
  tool: 'agent_tool_calls_total{job=~"$job", agent=~"$agent"}',
  model: 'agent_model_calls_total{job=~"$job", agent=~"$agent"}',
};

local variable(name) = {
  local values = 'label_values(' + sources[name] + ', ' + name + ')',

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
  allValue: '.+',
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
local firing(name, severity, shown) = {
  name: name,
  datasource: datasource,
  enable: shown,
  hide: false,
  iconColor: palette[severity],
  expr: 'max by (alertname, agent, tool) (ALERTS{job=~"$job", alertname=~"Agent.+", alertstate="firing", severity="' + severity + '"})',
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
  templating: { list: [chooseDatasource] + [variable(name) for name in spec.variables] },
  // What pages is drawn over every panel; warnings are a click away, or a fleet's would hide its lines.
  annotations: { list: [firing('Critical alerts', 'critical', true), firing('Warnings', 'warning', false)] },
  panels: std.foldl(
    rowOf,
    [row { panels: [{ palette: spec.palette } + panel for panel in row.panels] } for row in spec.rows],
    { bottom: 0, id: 1, panels: [] }
  ).panels,
}
