// What a panel's queries answered, as the data frames that Grafana's components take.
import {
  applyFieldOverrides,
  FieldType,
  identityOverrideProcessor,
  Registry,
  standardTransformers,
  standardTransformersRegistry,
  transformDataFrame,
} from '@grafana/data';
import { firstValueFrom } from 'rxjs';

const option = (path, isCustom) => ({
  id: isCustom ? `custom.${path}` : path,
  path,
  isCustom,
  name: path,
  process: identityOverrideProcessor,
  shouldApply: () => true,
});

// The field options that a dashboard of ours sets; Grafana's server registers them, its packages do not.
const standard = ['unit', 'min', 'max', 'decimals', 'displayName', 'noValue', 'color', 'thresholds', 'mappings', 'links'];
const custom = [
  'align', 'axisSoftMax', 'cellOptions', 'drawStyle', 'fillOpacity', 'filterable', 'hideFrom', 'lineStyle', 'lineWidth', 'showPoints', 'spanNulls',
  'stacking', 'thresholdsStyle', 'width',
];
const fieldOptions = new Registry(() => [
  ...standard.map((path) => option(path, false)),
  ...custom.map((path) => option(path, true)),
]);

standardTransformersRegistry.setInit(() =>
  [standardTransformers.mergeTransformer, standardTransformers.organizeFieldsTransformer].map((transformer) => ({
    id: transformer.id,
    name: transformer.name,
    transformation: async () => transformer,
  })),
);

const legendOf = (format, labels) => format.replace(/{{\s*(\w+)\s*}}/g, (_, label) => labels[label] ?? '');
const numbers = (points) => points.map(([, value]) => Number(value));
const times = (points) => points.map(([at]) => at * 1000);

// Where a series lacks a point of the query's steps, its line has a gap.
const stepOf = (result) =>
  Math.min(...result.flatMap(({ values = [] }) => values.slice(1).map(([at], index) => at - values[index][0]))) * 1000;

function linesOf(target, result) {
  const interval = stepOf(result);
  return result.map(({ metric, values, value }) => {
    const points = values ?? [value];
    const displayNameFromDS = legendOf(target.legendFormat, metric);
    return {
      refId: target.refId,
      length: points.length,
      fields: [
        { name: 'Time', type: FieldType.time, values: times(points), config: { interval } },
        { name: 'Value', type: FieldType.number, values: numbers(points), labels: metric, config: { displayNameFromDS } },
      ],
    };
  });
}

function tableOf(target, result, alone) {
  const labels = [...new Set(result.flatMap(({ metric }) => Object.keys(metric)))].sort();
  const points = result.map(({ value }) => value);
  return {
    refId: target.refId,
    length: result.length,
    fields: [
      { name: 'Time', type: FieldType.time, values: times(points), config: {} },
      ...labels.map((name) => ({
        name,
        type: FieldType.string,
        values: result.map(({ metric }) => metric[name]),
        config: {},
      })),
      { name: alone ? 'Value' : `Value #${target.refId}`, type: FieldType.number, values: numbers(points), config: {} },
    ],
  };
}

/** The frames of one panel, transformed and with its field options applied. */
export async function framesOf(panel, answers, theme) {
  const raw = panel.targets.flatMap((target, index) =>
    target.format === 'table'
      ? [tableOf(target, answers[index], panel.targets.length === 1)]
      : linesOf(target, answers[index]),
  );
  const data = await firstValueFrom(transformDataFrame(panel.transformations ?? [], raw, { interpolate: (text) => text }));
  return applyFieldOverrides({
    data,
    fieldConfig: structuredClone(panel.fieldConfig),
    fieldConfigRegistry: fieldOptions,
    replaceVariables: (text) => text,
    theme,
    timeZone: 'utc',
  });
}
