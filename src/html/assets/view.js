// SPDX-License-Identifier: Apache-2.0
// The base of all drawings: decoding of packed numbers, ranges that scroll and zoom, ticks, and a figure on a
// canvas with its tooltip, pointer and keys.

// Decodes html/packed.h. Numbers of more than 53 bits are rounded to the nearest double.
function unpack(text) {
  const raw = atob(text), numbers = new Float64Array(raw.length);
  let count = 0, value = 0, scale = 1;
  for (let i = 0; i < raw.length; ++i) {
    const byte = raw.charCodeAt(i);
    value += (byte & 127) * scale;
    scale *= 128;
    if (byte > 127) continue;
    numbers[count++] = value;
    value = 0;
    scale = 1;
  }
  return numbers.slice(0, count);
}

function unfold(number) { return number % 2 === 1 ? -(number + 1) / 2 : number / 2; }

// Prefix sums.
function sums(steps) {
  let sum = 0;
  return steps.map((step) => sum += step);
}

// A range inside [low, high) that can be scrolled and zoomed, down to a length of `least`. Watchers are called
// on changes.
class Range {
  constructor(low, high, least) { Object.assign(this, {low, high: Math.max(high, low + least), least, watchers: []}); this.reset(); }
  reset() { this.begin = this.low; this.end = this.high; }
  length() { return this.end - this.begin; }
  at(share) { return this.begin + share * this.length(); }
  share(value) { return (value - this.begin) / this.length(); }
  changed(what = 'all') { for (const tell of this.watchers) tell(what); }

  // Scrolls by a share of the visible length.
  move(share) { this.place(this.begin + share * this.length(), this.length()); }

  // Zooms around the point at `share`, which stays fixed.
  scale(factor, share) {
    const length = Math.min(Math.max(this.length() / factor, this.least), this.high - this.low);
    this.place(this.at(share) - share * length, length);
  }

  place(begin, length) {
    this.begin = Math.min(Math.max(begin, this.low), this.high - length);
    this.end = this.begin + length;
  }

  // Centres [from, to) unless all of it is visible.
  reveal(from, to) {
    if (from >= this.begin && to <= this.end) return;
    const length = Math.min(Math.max(this.length(), to - from), this.high - this.low);
    this.place((from + to - length) / 2, length);
  }
}

// One range for all figures over the same time, so that they scroll and zoom together.
const times = new Map();
function sharedTime(from, to) {
  const key = from + ' ' + to;
  if (!times.has(key)) times.set(key, new Range(from, to, Math.min(1, Math.max(to - from, 1))));
  return times.get(key);
}

// About `most` round numbers in [begin, end], spaced by 1, 2 or 5 times a power of ten, or by powers of two for
// bytes.
function ticks(begin, end, most, ofBytes) {
  const rough = Math.max((end - begin) / Math.max(most, 1), 1);
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = ofBytes ? 2 ** Math.ceil(Math.log2(rough)) : [1, 2, 5, 10].map((digit) => digit * ten).find((size) => size >= rough);
  const found = [];
  for (let tick = Math.ceil(begin / step) * step; tick <= end; tick += step) found.push(tick);
  return found;
}

// Round times in [begin, end], in nanoseconds; spacings above a minute are those of a clock.
function clockTicks(begin, end, most) {
  const minute = 60e9, rounds = [1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720, 1440, 2880].map((count) => count * minute);
  const step = rounds.find((size) => size >= (end - begin) / Math.max(most, 1)) ?? 7200 * minute;
  if ((end - begin) / Math.max(most, 1) < minute / 2) return ticks(begin, end, most, false);
  const found = [];
  for (let tick = Math.ceil(begin / step) * step; tick <= end; tick += step) found.push(tick);
  return found;
}

function timeText(step, time, clock) {
  return clock === 'before' ? durationText(time.high - step) : clock === 'since' ? durationText(step) : countText(step);
}

// '#rrggbb' as an RGBA pixel in memory, with opacity `share` over `ground`.
function pixel(hex, share = 1, ground = hex) {
  const part = (at) => Math.round(parseInt(hex.slice(at, at + 2), 16) * share + parseInt(ground.slice(at, at + 2), 16) * (1 - share));
  return (255 << 24 | part(5) << 16 | part(3) << 8 | part(1)) >>> 0;
}

// Blends the pixel `over` onto the pixel `under` with opacity part / 256.
function blend(over, under, part) {
  const mix = (shift) => ((over >>> shift & 255) * part + (under >>> shift & 255) * (256 - part)) >> 8;
  return (255 << 24 | mix(16) << 16 | mix(8) << 8 | mix(0)) >>> 0;
}

const gutter = 84, margin = 12, axisHeight = 24;  // CSS pixels, the same in all figures so that time axes align

// A drawing with axes. The expensive part is painted once into `pixels`, and reused when only the pointer
// moves. Subclasses provide `top`, the data, paint(pixels, width, height), decorate(), point(x, y), and `keys`
// with their actions.
class Figure {
  constructor(root, top) {
    this.root = root;
    this.top = top;
    this.bottom = axisHeight;
    this.canvas = root.querySelector('canvas');
    this.tip = root.querySelector('.tip');
    this.said = root.querySelector('output');
    this.data = JSON.parse(root.querySelector('script').textContent);
    this.ranges = {};  // x and y, for the axes that can be scrolled
  }

  begin() {
    for (const range of Object.values(this.ranges)) range.watchers.push((what) => this.later(what));
    this.listen();
    repaints.push(() => this.resize());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  // ---- Drawing.

  resize() {
    this.ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.context = this.canvas.getContext('2d');
    const names = ['ground', 'panel', 'ink', 'muted', 'line', 'warn', 'accent', 'faint'];
    this.colours = Object.fromEntries(names.map((name) => [name, colour(name)]));
    this.tones = Array.from({length: toneCount}, (_, i) => colour('tone-' + i));
    this.fills = this.tones.map((tone) => pixel(tone));
    this.edges = this.tones.map((tone) => pixel(tone, .72, '#000000'));
    this.drawAll();
  }

  innerWidth() { return Math.max(1, this.width - gutter - margin); }
  innerHeight() { return Math.max(1, this.height - this.top - this.bottom); }

  drawAll() {
    const width = Math.max(1, Math.round(this.innerWidth() * this.ratio)), height = Math.max(1, Math.round(this.innerHeight() * this.ratio));
    if (this.image?.width !== width || this.image?.height !== height) this.image = this.context.createImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(pixel(this.colours.ground));
    this.paint(pixels, width, height);
    this.draw();
  }

  // Coalesces all changes before the next frame.
  later(draw) {
    const waits = this.wanted !== undefined;
    this.wanted = this.wanted === 'all' ? 'all' : draw;
    if (!waits) requestAnimationFrame(() => {
      const wanted = this.wanted;
      this.wanted = undefined;
      if (!this.context) return;
      if (wanted === 'all') this.drawAll(); else this.draw();
    });
  }

  draw() {
    const context = this.context;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = this.colours.ground;
    context.fillRect(0, 0, this.width, this.height);
    context.putImageData(this.image, Math.round(gutter * this.ratio), Math.round(this.top * this.ratio));
    this.decorate();
  }

  text(words, x, y, align, paint) {
    this.context.textAlign = align;
    this.context.fillStyle = paint;
    this.context.fillText(words, x, y);
  }

  // Text on its own background, so that it is readable on anything.
  label(words, x, y, align) {
    const width = this.context.measureText(words).width, left = align === 'right' ? x - width : align === 'center' ? x - width / 2 : x;
    this.context.fillStyle = this.colours.ground;
    this.context.fillRect(left - 4, y - 12, width + 8, 16);
    this.text(words, left, y, 'left', this.colours.ink);
  }

  rule(x1, y1, x2, y2, paint, dash = []) {
    this.context.setLineDash(dash);
    this.context.strokeStyle = paint;
    this.context.beginPath();
    this.context.moveTo(x1, y1);
    this.context.lineTo(x2, y2);
    this.context.stroke();
    this.context.setLineDash([]);
  }

  drawByteAxis(begin, end) {
    const bottom = this.top + this.innerHeight();
    this.rule(gutter - .5, this.top, gutter - .5, bottom, this.colours.line);
    for (const tick of ticks(begin, end, this.innerHeight() / 50, true)) {
      const y = Math.round(bottom - (tick - begin) / (end - begin) * this.innerHeight());
      this.rule(gutter - 4, y + .5, gutter, y + .5, this.colours.line);
      this.text(bytesText(tick), gutter - 8, Math.min(Math.max(y + 4, this.top + 9), bottom), 'right', this.colours.muted);
    }
  }

  // Steps or, with a clock, nanoseconds since the beginning or before the end.
  drawTimeAxis(time, noun, clock = '') {
    const bottom = this.top + this.innerHeight(), right = gutter + this.innerWidth(), most = this.innerWidth() / 110;
    const back = (step) => time.high - step;
    const found = clock === 'before' ? clockTicks(back(time.end), back(time.begin), most).map(back) : (clock ? clockTicks : ticks)(time.begin, time.end, most, false);
    this.rule(gutter, bottom + .5, right, bottom + .5, this.colours.line);
    for (const tick of found) {
      const x = Math.round(gutter + time.share(tick) * this.innerWidth());
      this.rule(x + .5, bottom, x + .5, bottom + 4, this.colours.line);
      const words = timeText(tick, time, clock), half = this.context.measureText(words).width / 2;
      if (x - half > gutter - 20 && x + half < right + margin) this.text(words, x, bottom + 17, 'center', this.colours.muted);
    }
    this.text(noun, gutter - 8, bottom + 17, 'right', this.colours.muted);
  }

  // Marks the moment that a timeline's tooltip describes, in all figures over the same time.
  drawCursor(time) {
    if (time.cursor === undefined || time.cursor >= time.end) return;
    const x = Math.round(gutter + time.share(Math.max(time.cursor, time.begin)) * this.innerWidth()) + .5;
    this.rule(x, this.top, x, this.top + this.innerHeight(), this.colours.ink, [2, 2]);
  }

  // ---- The tooltip: a heading, and rows of [what, value] or [what, value, tone].

  tell(heading, rows, x, y) {
    this.tip.replaceChildren();
    this.tip.hidden = heading === '';
    if (heading === '') return;
    this.tip.append(element('strong', heading));
    for (const [what, value, tone] of rows) {
      const label = element('span', what);
      if (tone !== undefined) label.style.borderColor = 'var(--tone-' + tone + ')';
      label.className = tone === undefined ? '' : 'swatch';
      this.tip.append(label, element('span', value));
    }
    const right = x + 16 + this.tip.offsetWidth > this.width, down = y + 16 + this.tip.offsetHeight > this.height;
    this.tip.style.left = Math.max(2, right ? x - 12 - this.tip.offsetWidth : x + 16) + 'px';
    this.tip.style.top = Math.max(2, down ? Math.max(y - 12 - this.tip.offsetHeight, this.height - 2 - this.tip.offsetHeight) : y + 16) + 'px';
  }

  quiet() { this.tell('', []); }

  // ---- Pointer and keys.

  inside(x, y) {
    return {across: (x - gutter) / this.innerWidth(), up: 1 - (y - this.top) / this.innerHeight()};
  }

  each(act) {
    for (const [axis, range] of Object.entries(this.ranges)) act(range, axis);
    this.quiet();
    for (const range of Object.values(this.ranges)) range.changed();
  }

  zoom(factor, at = {x: .5, y: .5}, skip = '') {
    this.each((range, axis) => { if (axis !== skip || !this.ranges.y) range.scale(factor, at[axis]); });
  }

  move(by) { this.each((range, axis) => range.move(by[axis])); }
  showAll() { this.each((range) => range.reset()); }

  key(event) {
    if (event.ctrlKey || event.metaKey) return;
    const moves = {ArrowLeft: {x: -.1, y: 0}, ArrowRight: {x: .1, y: 0}, ArrowUp: {x: 0, y: .1}, ArrowDown: {x: 0, y: -.1}};
    const zooms = {'+': 1.25, '=': 1.25, '-': .8, '_': .8, '\u2212': .8};
    const others = {0: () => this.showAll(), escape: () => this.quiet(), ...this.keys};
    if (moves[event.key] && (this.ranges.y || this.movesUp || moves[event.key].y === 0)) this.move(moves[event.key]);
    else if (zooms[event.key]) this.zoom(zooms[event.key], undefined, event.altKey ? 'x' : '');
    else if (others[event.key.toLowerCase()]) others[event.key.toLowerCase()]();
    else return;
    event.preventDefault();
  }

  // Zooms only if the figure has the focus, or with Ctrl: otherwise the wheel scrolls the document.
  wheel(event) {
    if (document.activeElement !== this.canvas && !event.ctrlKey) return;
    event.preventDefault();
    const {across, up} = this.inside(event.offsetX, event.offsetY), clamp = (share) => Math.min(1, Math.max(0, share));
    const turned = event.deltaY || event.deltaX;  // with Shift some browsers report deltaX
    this.zoom(Math.exp(-Math.sign(turned) * .2), {x: clamp(across), y: clamp(up)}, event.shiftKey ? 'y' : event.altKey ? 'x' : '');
  }

  drag(event) {
    if (!this.dragged) return this.point(event.offsetX, event.offsetY);
    this.move({x: (this.dragged.x - event.clientX) / this.innerWidth(), y: (event.clientY - this.dragged.y) / this.innerHeight()});
    this.dragged = {x: event.clientX, y: event.clientY};
  }

  listen() {
    const actions = {closer: () => this.zoom(1.5), farther: () => this.zoom(1 / 1.5), all: () => this.showAll(), ...this.actions};
    for (const button of this.root.querySelectorAll('[data-do]')) button.addEventListener('click', actions[button.dataset.do]);
    const on = (name, act) => this.canvas.addEventListener(name, act, {passive: false});
    on('keydown', (event) => this.key(event));
    on('wheel', (event) => this.wheel(event));
    on('pointermove', (event) => this.drag(event));
    on('pointerleave', () => { if (!this.dragged) this.quiet(); });
    on('pointerdown', (event) => { this.dragged = {x: event.clientX, y: event.clientY}; this.canvas.setPointerCapture(event.pointerId); });
    on('pointerup', (event) => { this.dragged = undefined; this.point(event.offsetX, event.offsetY); });
    on('pointercancel', () => { this.dragged = undefined; });
    on('blur', () => this.quiet());
  }
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}
