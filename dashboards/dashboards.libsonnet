// Every dashboard, under the name of its file.
local dashboard = import 'lib/dashboard.libsonnet';
local withRunbooks = import 'lib/runbooks.libsonnet';

local specs = [
  import 'overview.libsonnet',
  import 'loops.libsonnet',
  import 'turns.libsonnet',
  import 'tools.libsonnet',
  import 'spend.libsonnet',
  import 'self.libsonnet',
];

{
  // What an alert is kept apart by, above the job: each is a variable of every dashboard.
  local config = $._config { variablesAbove: std.filter(function(label) label != 'job', $._config.aggregationLabels) },

  grafanaDashboards+:: {
    [spec.uid + '.json']: withRunbooks(config, dashboard(spec { palette: config.seriesPalette, above: config.variablesAbove }))
    for spec in [made(config) for made in specs]
  },
}
