// How each type of panel is drawn: with Grafana's component where its packages have one.
import {
  cacheFieldDisplayNames,
  dateTime,
  getDisplayProcessor,
  getDisplayValueAlignmentFactors,
  getFieldDisplayName,
  getFieldDisplayValues,
  VizOrientation,
} from '@grafana/data';
import { BarGauge, BigValue, TimeSeries, VizRepeater } from '@grafana/ui';
import { TableNG } from '@grafana/ui/unstable';

const asIs = (text) => text;

const reduced = ({ panel, series, theme }, sparkline) =>
  getFieldDisplayValues({
    data: series,
    fieldConfig: panel.fieldConfig,
    reduceOptions: panel.options.reduceOptions,
    replaceVariables: asIs,
    sparkline,
    theme,
    timeZone: 'utc',
  });

function Empty({ panel }) {
  return <div className="empty">{panel.fieldConfig.defaults.noValue}</div>;
}

function Number_(props) {
  const { panel, width, height, theme } = props;
  const [value] = reduced(props, true);
  return (
    <BigValue
      value={value.display}
      sparkline={value.sparkline}
      colorMode={panel.options.colorMode}
      graphMode={panel.options.graphMode}
      justifyMode={panel.options.justifyMode}
      textMode={panel.options.textMode}
      width={width}
      height={height}
      theme={theme}
    />
  );
}

// A dashed line where an alert began to fire, another where it stopped, and a bar between them below the axis: as Grafana
// draws annotations, which its packages do not.
const draws = (marks, theme) => (config) => {
  config.addHook('draw', (plot) => {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.setLineDash([5 * devicePixelRatio, 5 * devicePixelRatio]);
    for (const { color, values } of marks.flatMap(({ color, fired }) => fired.map(({ values }) => ({ color, values })))) {
      ctx.strokeStyle = ctx.fillStyle = theme.visualization.getColorByName(color);
      const [begin, end] = [values[0][0], values.at(-1)[0]].map((at) => plot.valToPos(at * 1000, 'x', true));
      for (const x of [begin, end].filter((at) => at >= bbox.left && at < bbox.left + bbox.width)) {
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.globalAlpha = 0.4;
      ctx.fillRect(begin, bbox.top + bbox.height, end - begin, 4 * devicePixelRatio);
      ctx.globalAlpha = 1;
    }
    ctx.restore();
  });
  return null;
};

function Trend({ panel, series, width, height, theme, from, to, marks }) {
  if (series.length === 0) {
    return <Empty panel={panel} />;
  }
  const timeRange = { from: dateTime(from), to: dateTime(to), raw: { from: dateTime(from), to: dateTime(to) } };
  return (
    <TimeSeries
      frames={series}
      structureRev={1}
      timeRange={timeRange}
      timeZone="utc"
      width={width}
      height={height}
      legend={panel.options.legend}
      options={panel.options}
      replaceVariables={asIs}
    >
      {draws(marks, theme)}
    </TimeSeries>
  );
}

function Ranking(props) {
  const { panel, width, height, theme } = props;
  const { options } = panel;
  return (
    <VizRepeater
      getValues={() => reduced(props, false)}
      getAlignmentFactors={getDisplayValueAlignmentFactors}
      renderValue={({ value, width: barWidth, height: barHeight, alignmentFactors }) => (
        <BarGauge
          value={value.display}
          field={value.field}
          text={options.text}
          alignmentFactors={alignmentFactors}
          display={value.view?.getFieldDisplayProcessor(value.colIndex)}
          width={barWidth}
          height={barHeight}
          orientation={VizOrientation.Horizontal}
          displayMode={options.displayMode}
          namePlacement={options.namePlacement}
          showUnfilled={options.showUnfilled}
          valueDisplayMode={options.valueMode}
          theme={theme}
        />
      )}
      source={props.series}
      itemSpacing={8}
      minVizWidth={options.minVizWidth}
      minVizHeight={options.minVizHeight}
      orientation={VizOrientation.Horizontal}
      width={width}
      height={height}
      renderCounter={1}
    />
  );
}

function Rows({ panel, series, width, height }) {
  cacheFieldDisplayNames(series);
  return (
    <TableNG
      data={series[0]}
      width={width}
      height={height}
      cellHeight={panel.options.cellHeight}
      initialSortBy={panel.options.sortBy}
      structureRev={1}
      getActions={() => []}
      replaceVariables={asIs}
    />
  );
}

// Grafana publishes no component for the two below: what is drawn for them shows the data and the labels only.

function Times({ panel, series, width, theme, from, to }) {
  const nameWidth = 260;
  const span = (width - nameWidth) / (to - from);
  return series.map((frame) => {
    const [time, value] = frame.fields;
    const name = getFieldDisplayName(value, frame, series);
    const step = time.config.interval;
    return (
      <div key={name} style={{ position: 'relative', height: 32, lineHeight: '32px', whiteSpace: 'nowrap' }}>
        {name}
        {time.values.map((at, index) => (
          <span
            key={at}
            style={{
              position: 'absolute',
              left: nameWidth + (at - from) * span,
              width: step * span + 1,
              height: 26,
              background: theme.visualization.getColorByName(panel.fieldConfig.defaults.mappings[0].options[value.values[index]].color),
            }}
          />
        ))}
      </div>
    );
  });
}

function Distribution({ panel, series, width, height, theme, from, to }) {
  // Buckets come cumulated: each holds what the ones below it hold.
  const ordered = series
    .map((frame) => ({ le: Number(frame.fields[1].labels.le.replace('+Inf', 'Infinity')), frame }))
    .sort((a, b) => a.le - b.le);
  const at = (index, time) => {
    const [times, values] = ordered[index]?.frame.fields ?? [{ values: [] }];
    return values?.values[times.values.indexOf(time)] ?? 0;
  };
  const cells = ordered.flatMap(({ frame }, row) =>
    frame.fields[0].values.map((time) => ({ row, time, count: Math.max(0, at(row, time) - at(row - 1, time)) })),
  );
  const most = Math.max(...cells.map(({ count }) => count));
  const axis = 64;
  const rowHeight = height / ordered.length;
  const unit = getDisplayProcessor({ field: { type: 'number', config: { unit: panel.options.yAxis.unit } }, theme });
  return (
    <svg width={width} height={height}>
      {ordered.map(({ le }, row) => (
        <text key={le} x={0} y={height - row * rowHeight - 2} fill={theme.colors.text.secondary} fontSize={10}>
          {Number.isFinite(le) ? `${unit(le).text}${unit(le).suffix ?? ''}` : '+Inf'}
        </text>
      ))}
      {cells.filter(({ count }) => count > 0).map(({ row, time, count }) => (
        <rect
          key={`${row} ${time}`}
          x={axis + ((time - from) / (to - from)) * (width - axis)}
          y={height - (row + 1) * rowHeight}
          width={((width - axis) * ordered[0].frame.fields[0].config.interval) / (to - from)}
          height={rowHeight - 1}
          fill={`hsl(${280 - 220 * Math.sqrt(count / most)} 60% ${25 + 40 * Math.sqrt(count / most)}%)`}
        />
      ))}
    </svg>
  );
}

export const kinds = {
  stat: Number_,
  timeseries: Trend,
  bargauge: Ranking,
  table: Rows,
  'state-timeline': Times,
  heatmap: Distribution,
};
