// SPDX-License-Identifier: Apache-2.0
// Bytes over time, as a stacked area chart.

// The timeline of html/timeline.h: from steps[i] until steps[i + 1], group g has columns[g][i] bytes.
function readTimeline(data) {
  const steps = sums(unpack(data.steps)), columns = data.columns.map((column) => sums(unpack(column).map(unfold)));
  const total = new Float64Array(steps.length);
  for (const column of columns) column.forEach((bytes, i) => { total[i] += bytes; });
  const lines = data.lines.map((line) => ({label: line.label, steps: sums(unpack(line.steps)), bytes: sums(unpack(line.bytes).map(unfold))}));
  return {...data, steps, columns, total, lines, peak: total.reduce((best, bytes, i) => bytes > total[best] ? i : best, 0)};
}

// The index of the last of the ascending `values` that is at most `value`, or -1 (binary search).
function lastNotAbove(values, value) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1; else high = middle;
  }
  return low - 1;
}

// For each of `width` equal parts of the time: the moments with the most and the fewest bytes, including the
// moment in effect at the start of the part.
function extremes(steps, bytes, time, width) {
  const most = new Int32Array(width), least = new Int32Array(width);
  let i = Math.max(0, lastNotAbove(steps, time.begin));
  for (let x = 0; x < width; ++x) {
    const end = time.at((x + 1) / width);
    let high = i, low = i;
    while (i + 1 < steps.length && steps[i + 1] < end) {
      ++i;
      if (bytes[i] > bytes[high]) high = i;
      if (bytes[i] < bytes[low]) low = i;
    }
    most[x] = high;
    least[x] = low;
  }
  return {most, least};
}

// All moments within [from, to), from the boxes of a complete map: for zooming into a downsampled timeline.
// Groups are identified by tone.
function exactMoments(line, map, from, to) {
  const groups = line.groups.length, groupOf = (i) => line.tones.indexOf(map.tone[i]), now = new Float64Array(groups), changes = [];
  eachAlive(map, from, to, (i) => {
    if (map.begin[i] <= from) now[groupOf(i)] += map.size[i]; else changes.push([map.begin[i], groupOf(i), map.size[i]]);
    if (map.end[i] < to) changes.push([map.end[i], groupOf(i), -map.size[i]]);
  });
  changes.sort((a, b) => a[0] - b[0]);
  const steps = [from], columns = Array.from(now, (bytes) => [bytes]);
  for (const [step, group, bytes] of changes) {
    now[group] += bytes;
    if (steps.at(-1) !== step) steps.push(step);
    columns.forEach((column, g) => { column[steps.length - 1] = now[g]; });
  }
  return {steps, columns, total: steps.map((_, i) => columns.reduce((sum, column) => sum + column[i], 0))};
}

const closeSteps = 20000;  // up to this many steps are drawn from exactMoments
const kBlack = 0xff000000;

class TimelineFigure extends Figure {
  constructor(root) {
    super(root, 22);
    this.line = readTimeline(this.data);
    this.time = this.ranges.x = sharedTime(this.line.from, this.line.to);
    this.chosen = -1;  // the moment that the tooltip describes
    this.shown = this.line;  // the moments that are drawn
    const goToPeak = () => this.visit(this.line.steps[this.line.peak]);
    this.keys = {m: goToPeak, n: () => this.step(1), p: () => this.step(-1)};
    this.actions = {peak: goToPeak};
    this.begin();
  }

  // ---- Drawing.

  paint(pixels, width, height) {
    this.look();
    this.parts = extremes(this.shown.steps, this.shown.total, this.time, width);
    this.lineParts = this.line.lines.map((one) => extremes(one.steps, one.bytes, this.time, width).most);
    this.ceiling = this.findCeiling();
    for (let x = 0; x < width; ++x) this.paintColumn(pixels, width, height, x);
  }

  look() {
    const {begin, end} = this.time, isClose = this.line.coarse && this.map?.map.complete && end - begin <= closeSteps;
    if (!isClose) this.shown = this.line;
    else if (this.shown.from !== Math.floor(begin) || this.shown.to !== end) this.shown = {...exactMoments(this.line, this.map.map, Math.floor(begin), end), from: Math.floor(begin), to: end};
  }

  // The vertical scale follows what is in view.
  findCeiling() {
    let most = 1;
    for (const i of this.parts.most) most = Math.max(most, this.shown.total[i]);
    this.lineParts.forEach((parts, k) => { for (const i of parts) most = Math.max(most, this.line.lines[k].bytes[i]); });
    return most * 1.04;
  }

  paintColumn(pixels, width, height, x) {
    const at = this.parts.most[x], perByte = height / this.ceiling;
    let bytes = 0, bottom = height;
    this.shown.columns.forEach((column, g) => {
      bytes += column[at];
      const top = Math.min(bottom, height - Math.round(bytes * perByte)), tone = this.line.tones[g];
      for (let y = top; y < bottom; ++y) pixels[y * width + x] = this.fills[tone];
      if (bottom - top > 2) pixels[top * width + x] = this.edges[tone];
      bottom = top;
    });
    const least = this.shown.total[this.parts.least[x]], row = height - 1 - Math.round(least * perByte);
    if (row > bottom + 2) pixels[row * width + x] = blend(kBlack, pixels[row * width + x], 96);
  }

  heightOf(bytes) { return this.top + this.innerHeight() * (1 - bytes / this.ceiling); }

  decorate() {
    this.drawByteAxis(0, this.ceiling);
    this.drawTimeAxis(this.time, this.line.step, this.line.clock);
    this.drawLines();
    this.drawMarks();
    this.drawLabels();
    this.drawPeak();
    this.drawCursor(this.time);
  }

  drawLines() {
    this.lineParts.forEach((parts, k) => {
      this.context.strokeStyle = this.colours.ink;
      this.context.beginPath();
      parts.forEach((at, x) => {
        const y = this.heightOf(this.line.lines[k].bytes[at]), px = gutter + (x + .5) / this.ratio;
        if (x === 0) this.context.moveTo(px, y); else this.context.lineTo(px, y);
      });
      this.context.stroke();
    });
  }

  drawMarks() {
    for (const [label, level] of this.line.marks) {
      const y = this.heightOf(Number(level));
      if (y < this.top) continue;
      this.rule(gutter, y, gutter + this.innerWidth(), y, this.colours.warn, [6, 4]);
      this.label(label + ' ' + bytesText(level), gutter + this.innerWidth() - 4, y + 14, 'right');
    }
  }

  // Draws the labels that do not overlap the previous one.
  drawLabels() {
    let free = gutter;
    for (const [step, words] of this.line.labels) {
      const x = Math.round(gutter + this.time.share(step) * this.innerWidth()) + .5, width = this.context.measureText(words).width + 8;
      if (x < free || x + width > gutter + this.innerWidth()) continue;
      this.rule(x, this.top, x, this.top + this.innerHeight(), this.colours.muted, [1, 3]);
      this.text(words, x + 4, this.top + 10, 'left', this.colours.muted);
      free = x + width;
    }
  }

  drawPeak() {
    const {steps, total, peak} = this.line, share = this.time.share(steps[peak] ?? 0);
    if (!total[peak] || share < 0 || share > 1) return;
    const x = gutter + share * this.innerWidth(), y = this.heightOf(total[peak]);
    this.context.fillStyle = this.colours.ink;
    this.context.beginPath();
    this.context.moveTo(x, y - 2);
    this.context.lineTo(x - 4, y - 9);
    this.context.lineTo(x + 4, y - 9);
    this.context.fill();
    const words = 'peak ' + bytesText(total[peak]), half = this.context.measureText(words).width / 2;
    const middle = Math.min(Math.max(x, gutter + half), gutter + this.innerWidth() - half);
    this.text(words, middle, y - 13, 'center', this.colours.ink);
  }

  // ---- The tooltip of a moment.

  point(x, y) {
    const {across, up} = this.inside(x, y);
    if (across < 0 || across >= 1 || up < 0 || !this.parts) return this.quiet();
    this.choose(this.parts.most[Math.floor(across * this.parts.most.length)], x, y);
  }

  choose(i, x, y) {
    const {steps, columns, total} = this.shown, step = steps[i];
    this.mark(i);
    const rows = [];
    for (let g = this.line.groups.length - 1; g >= 0; --g)
      if (columns[g][i] > 0) rows.push([this.line.groups[g], bytesText(columns[g][i]), this.line.tones[g]]);
    for (const line of this.line.lines) rows.push([line.label, bytesText(line.bytes[Math.max(0, lastNotAbove(line.steps, step))])]);
    const largest = this.map?.largestAt(step);
    if (largest) rows.push(['largest', largest]);
    this.tell(this.momentText(step) + ': ' + bytesText(total[i]), rows, x, y);
  }

  momentText(step) {
    const words = timeText(step, this.time, this.line.clock);
    return this.line.clock === 'before' ? words + ' before' : this.line.clock ? 'after ' + words : this.line.step + ' ' + words;
  }

  mark(i) {
    if (this.chosen === i && this.time.cursor === this.shown.steps[i]) return;
    this.chosen = i;
    this.time.cursor = this.shown.steps[i];  // undefined if i is -1
    this.time.changed('frame');
  }

  quiet() {
    this.mark(-1);
    super.quiet();
  }

  // Scrolls a moment into view and shows its tooltip, as hovering would.
  visit(step) {
    this.time.reveal(step, step + 1);
    this.time.changed();
    this.look();
    this.choose(Math.max(0, lastNotAbove(this.shown.steps, step)), gutter + this.time.share(step) * this.innerWidth(), this.top + 20);
  }

  // Goes to the next or previous local maximum.
  step(by) {
    const {most} = this.parts, {steps, total} = this.shown, bytes = (x) => total[most[x]] ?? -1;
    const from = this.chosen < 0 ? (by > 0 ? -1 : most.length) : Math.floor(this.time.share(steps[this.chosen]) * most.length);
    for (let x = from + by; x >= 0 && x < most.length; x += by)
      if (bytes(x) > bytes(x - 1) && bytes(x) >= bytes(x + 1) && most[x] !== this.chosen) return this.visit(steps[most[x]]);
  }
}
