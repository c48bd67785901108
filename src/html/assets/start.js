// SPDX-License-Identifier: Apache-2.0
// Creates the figures. A timeline's tooltip also describes the blocks of the map that follows it.
function startFigures() {
  let timeline;
  for (const root of document.querySelectorAll('.figure')) {
    const figure = new {timeline: TimelineFigure, map: MapFigure, range: RangeFigure}[root.dataset.kind](root);
    if (root.dataset.kind === 'timeline') timeline = figure;
    if (root.dataset.kind === 'map' && timeline) [timeline.map, timeline] = [figure, undefined];
  }
}

startFigures();
startTables();
startTheme();
