// A panel from one short object:
//   { kind: 'trend', title, description, unit, queries: { legend: expr }, width: 8, height: 9, limits: {warning, critical} }
local palette = import 'palette.libsonnet';

local datasource = { type: 'prometheus', uid: '${datasource}' };

local thresholds(limits, below=palette.good) = {
  mode: 'absolute',
  steps:
    [{ color: below, value: null }]
    + [{ color: palette[name], value: limits[name] } for name in ['warning', 'critical'] if std.objectHas(limits, name)],
};

// How the lines of a trend are coloured, and from which values on.
local lineColours(spec) =
  local colouredBy(mode) = { mode: mode, seriesBy: 'max' };
  // Past its limit a line is as dangerous as the number on top of the page would say.
  if std.objectHas(spec, 'limits') then { color: colouredBy('thresholds'), thresholds: thresholds(spec.limits) }
  else {
    // A palette that is not known is taken for thresholds from Grafana 12.4 on.
    color: colouredBy(if spec.palette == 'by-size' then 'thresholds' else spec.palette),
    thresholds: { mode: 'percentage', steps: [{ color: step.color, value: step.from } for step in palette.bySize] },
  };

// A panel whose legend is a closed label, or ends with one, gets that label's colours.
local colours(spec) = [
  {
    matcher: if isAll then { id: 'byName', options: value } else { id: 'byRegexp', options: '/ ' + value + '$/' },
    properties: [{ id: 'color', value: { mode: 'fixed', fixedColor: palette.ofLabel[label][value] } }],
  }
  for label in std.objectFields(palette.ofLabel)
  for legend in std.objectFields(spec.queries)
  for isAll in [legend == '{{' + label + '}}']
  if isAll || std.endsWith(legend, ' {{' + label + '}}')
  for value in std.objectFields(palette.ofLabel[label])
];

// Half of the events lie below this line: dashed, so that it is not told from p95 by its colour alone.
local dashedMedians(spec) = [
  {
    matcher: { id: 'byRegexp', options: '/p50$/' },
    properties: [{ id: 'custom.lineStyle', value: { fill: 'dash', dash: [6, 6] } }],
  }
  for legend in std.objectFields(spec.queries)
  if std.endsWith(legend, 'p50')
];

// Three lines of a legend are seen without scrolling: the largest ones.
local legend = {
  displayMode: 'table',
  placement: 'bottom',
  showLegend: true,
  calcs: ['lastNotNull', 'max'],
  sortBy: 'Max',
  sortDesc: true,
};
local lastValue = { calcs: ['lastNotNull'], fields: '', values: false };

// What each kind adds to a panel.
local kinds = {
  // One number, coloured by its limits. Asked once, at the end of the time shown: a process that has gone leaves no
  // number behind, it costs a hundredth of the same over time, and without a small graph in it, it is read from afar.
  number(spec): {
    type: 'stat',
    fieldConfig: { defaults: { color: { mode: 'thresholds' } }, overrides: [] },
    options: {
      colorMode: 'value',
      graphMode: 'none',
      justifyMode: 'auto',
      orientation: 'auto',
      textMode: 'auto',
      reduceOptions: lastValue,
    },
  },

  // Lines over time; limits are dashed lines.
  trend(spec): {
    type: 'timeseries',
    fieldConfig: {
      defaults: lineColours(spec) {
        custom: {
          drawStyle: 'line',
          fillOpacity: if std.get(spec, 'stacked', false) then 30 else 8,
          lineWidth: 2,
          showPoints: 'never',
          spanNulls: false,
          stacking: { group: 'A', mode: if std.get(spec, 'stacked', false) then 'normal' else 'none' },
          thresholdsStyle: { mode: if std.objectHas(spec, 'limits') then 'dashed' else 'off' },
        },
      },
      overrides: colours(spec) + dashedMedians(spec),
    },
    options: { legend: legend, tooltip: { mode: 'multi', sort: 'desc' } },
  },

  // How often something rare happened near each point. Bars, since one event alone makes no line, and none as high as
  // the panel.
  events(spec): self.trend(spec { stacked: true }) {
    fieldConfig+: { defaults+: { custom+: { axisSoftMax: 4, drawStyle: 'bars', fillOpacity: 50, lineWidth: 1 } } },
  },

  // Distribution over time, from a histogram's buckets.
  distribution(spec): {
    type: 'heatmap',
    fieldConfig: { defaults: { custom: { hideFrom: { legend: false, tooltip: false, viz: false } } }, overrides: [] },
    options: {
      calculate: false,
      cellGap: 1,
      color: { mode: 'scheme', scheme: 'Viridis', steps: 64, reverse: false, exponent: 0.5, fill: palette.good },
      exemplars: { color: palette.critical },
      filterValues: { le: 1e-9 },
      legend: { show: true },
      rowsFrame: { layout: 'auto' },
      tooltip: { mode: 'single', yHistogram: false, showColorScale: false },
      yAxis: { axisPlacement: 'left', reverse: false, unit: spec.unit },
    },
  },

  // When something held, a bar for each label value: 1 for a warning, 2 for what is critical.
  times(spec): {
    type: 'state-timeline',
    fieldConfig: {
      defaults: {
        color: { mode: 'thresholds' },
        custom: { fillOpacity: 80, lineWidth: 0 },
        mappings: [{
          type: 'value',
          options: {
            '1': { text: 'warning', color: palette.warning, index: 0 },
            '2': { text: 'critical', color: palette.critical, index: 1 },
          },
        }],
      },
      overrides: [],
    },
    options: {
      alignValue: 'left',
      legend: { displayMode: 'list', placement: 'bottom', showLegend: false },
      mergeValues: true,
      rowHeight: 0.8,
      showValue: 'never',
      tooltip: { mode: 'single', sort: 'none' },
    },
  },

  // Bars for a ranking at this moment.
  ranking(spec): {
    type: 'bargauge',
    fieldConfig: { defaults: { color: { mode: 'thresholds' } }, overrides: [] },
    options: {
      displayMode: 'basic',
      minVizHeight: 16,
      minVizWidth: 8,
      // Above the bar: beside it, a narrow screen cuts the names.
      namePlacement: 'top',
      orientation: 'horizontal',
      reduceOptions: lastValue,
      showUnfilled: true,
      sizing: 'auto',
      text: { titleSize: 12, valueSize: 14 },
      valueMode: 'color',
    },
  },

  // Rows of labels; each query is a column named by its legend.
  rows(spec): {
    // How Grafana names the value of a query: by its letter when there are several.
    local valueOf(column) = 'Value' + (if std.length(spec.columns) == 1 then '' else ' #' + spec.columns[column].refId),

    type: 'table',
    fieldConfig: {
      defaults: { color: { mode: 'thresholds' }, custom: { align: 'auto', filterable: true } },
      overrides: [
        {
          matcher: { id: 'byName', options: column },
          properties: [{ id: 'unit', value: spec.columns[column].unit }, { id: 'noValue', value: '–' }] + (
            if std.objectHas(spec.columns[column], 'limits') then [
              { id: 'thresholds', value: thresholds(spec.columns[column].limits, below='text') },
              { id: 'custom.cellOptions', value: { type: 'color-text' } },
            ] else []
          ) + std.get(spec.columns[column], 'properties', [])
        }
        for column in std.objectFields(spec.columns)
      ],
    },
    options: { cellHeight: 'sm', showHeader: true, sortBy: [{ desc: true, displayName: spec.sortBy }] },
    transformations: [
      { id: 'merge', options: {} },
      {
        id: 'organize',
        options: {
          excludeByName: { Time: true },
          indexByName: { [spec.rows[i]]: i for i in std.range(0, std.length(spec.rows) - 1) } + {
            [valueOf(column)]: 10 + spec.columns[column].position
            for column in std.objectFields(spec.columns)
          },
          renameByName: { [valueOf(column)]: column for column in std.objectFields(spec.columns) },
        },
      },
    ],
  },
};

local isAskedOnce(spec) = std.member(['number', 'ranking'], spec.kind);

local refId(index) = std.char(65 + index);

local targets(spec) =
  local isTable = spec.kind == 'rows';
  local legends = if isTable then [] else std.objectFields(spec.queries);
  if isTable then [
    {
      datasource: datasource,
      refId: spec.columns[column].refId,
      expr: spec.columns[column].expr,
      instant: true,
      range: false,
      format: 'table',
      legendFormat: column,
    }
    for column in std.sort(std.objectFields(spec.columns), function(column) spec.columns[column].refId)
  ] else [
    {
      datasource: datasource,
      refId: refId(i),
      expr: spec.queries[legends[i]],
      legendFormat: legends[i],
      instant: isAskedOnce(spec),
      range: !isAskedOnce(spec),
      exemplar: std.get(spec, 'exemplars', false),
      [if spec.kind == 'distribution' then 'format']: 'heatmap',
    }
    for i in std.range(0, std.length(legends) - 1)
  ];

function(spec)
  local columns = std.get(spec, 'columnsInOrder', []);
  local complete = spec + (
    if spec.kind != 'rows' then {} else {
      columns: {
        [columns[i].name]: columns[i] { refId: refId(i), position: i }
        for i in std.range(0, std.length(columns) - 1)
      },
      sortBy: columns[0].name,
    }
  );
  local kind = kinds[spec.kind](complete);
  kind {
    title: spec.title,
    description: spec.description,
    datasource: datasource,
    targets: targets(complete),
    // As many as a third of a screen can show; Grafana would take one a pixel. Fewer where each point reads all
    // buckets of all series, or two rates of each.
    maxDataPoints: std.get(spec, 'points', std.get({ distribution: 40, events: 75 }, spec.kind, 150)),
    fieldConfig+: {
      defaults+: {
        unit: spec.unit,
        min: 0,
        noValue: std.get(spec, 'whenEmpty', if spec.kind == 'number' then '0' else 'Nothing in the time shown'),
        [if kind.type != 'timeseries' then 'thresholds']: thresholds(std.get(spec, 'limits', {})),
        [if std.objectHas(spec, 'decimals') then 'decimals']: spec.decimals,
        [if std.objectHas(spec, 'max') then 'max']: spec.max,
        [if std.objectHas(spec, 'links') then 'links']: spec.links,
      },
    },
  }
