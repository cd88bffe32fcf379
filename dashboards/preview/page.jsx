// One dashboard as a page: its panels on Grafana's grid, in Grafana's panel frames.
import { createTheme, ThemeContext } from '@grafana/data';
import { GlobalStyles, PanelChrome } from '@grafana/ui';
import { createRoot } from 'react-dom/client';

import { framesOf } from './frames.js';
import { kinds } from './kinds.jsx';

const COLUMNS = 24;
const CELL = 30;
const GAP = 8;

const { dashboard, answers, marks, from, to } = window.PREVIEW;
const theme = createTheme({ colors: { mode: 'dark' } });
const width = document.documentElement.clientWidth - 2 * GAP;
const rows = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h));

// As Grafana's grid has it: cells of 30 pixels, 8 apart.
const boxOf = ({ x, y, w, h }) => ({
  position: 'absolute',
  left: GAP + Math.round((x * (width + GAP)) / COLUMNS),
  top: 48 + y * (CELL + GAP),
  width: Math.round((w * (width + GAP)) / COLUMNS) - GAP,
  height: h * (CELL + GAP) - GAP,
});

function Panel({ panel, series }) {
  const box = boxOf(panel.gridPos);
  if (panel.type === 'row') {
    return <div style={{ ...box, ...theme.typography.h5, lineHeight: `${box.height}px` }}>{panel.title}</div>;
  }
  const Kind = kinds[panel.type];
  return (
    <div style={box} data-panel={panel.title}>
      <PanelChrome title={panel.title} description={panel.description} width={box.width} height={box.height}>
        {(innerWidth, innerHeight) => (
          <Kind {...{ panel, series, theme, from, to, marks }} width={innerWidth} height={innerHeight} />
        )}
      </PanelChrome>
    </div>
  );
}

async function draw() {
  // The width of an axis is measured in this font before anything is drawn in it.
  await document.fonts.load('12px Inter');
  const drawn = await Promise.all(
    dashboard.panels.map(async (panel) => ({
      panel,
      series: panel.type === 'row' ? [] : await framesOf(panel, answers[panel.id], theme),
    })),
  );
  createRoot(document.getElementById('page')).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles isExtensionSidebarOpen={false} />
      <div style={{ height: 56 + rows * (CELL + GAP), background: theme.colors.background.canvas }}>
        <div style={{ ...theme.typography.h4, padding: 12 }}>{dashboard.title}</div>
        {drawn.map(({ panel, series }) => (
          <Panel key={panel.id} panel={panel} series={series} />
        ))}
      </div>
    </ThemeContext.Provider>,
  );
}

const failed = (error) => {
  document.title = `failed: ${error?.stack ?? error}`;
};
window.addEventListener('error', ({ error, message }) => failed(error ?? message));
window.addEventListener('unhandledrejection', ({ reason }) => failed(reason));
draw().catch(failed);
