// SPDX-License-Identifier: Apache-2.0
#include "page/script.h"

namespace berth::page {

const std::string_view kMapScript = R"js(
const gutter = 78, stripHeight = 56, stripTop = 10, mapTop = 78, axisHeight = 26, margin = 12;  // CSS pixels

class MapFigure {
  constructor(root) {
    this.canvas = root.querySelector('canvas');
    this.tip = root.querySelector('.tip');
    this.said = root.querySelector('output');
    this.map = readMap(root.querySelector('script').textContent);
    this.view = makeView(this.map);
    this.chosen = -1;  // the box that the tip tells of
    this.listen(root);
    repaints.push(() => this.resize());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
  }

  // ---- Drawing. The boxes are kept as an image, so that a moving pointer does not draw them again.

  resize() {
    this.ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.context = this.canvas.getContext('2d');
    this.colours = Object.fromEntries(['ground', 'ink', 'muted', 'line', 'warn', 'area'].map((name) => [name, colour(name)]));
    const tones = Array.from({length: this.map.tones}, (_, i) => colour('tone-' + i));
    this.fills = tones.map((tone) => pixel(tone));
    this.edges = tones.map((tone) => pixel(tone, .75));
    this.drawAll();
  }

  innerWidth() { return Math.max(1, this.width - gutter - margin); }
  innerHeight() { return Math.max(1, this.height - mapTop - axisHeight); }

  drawAll() {
    const width = Math.max(1, Math.round(this.innerWidth() * this.ratio)), height = Math.max(1, Math.round(this.innerHeight() * this.ratio));
    this.image = this.context.createImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer);
    pixels.fill(pixel(this.colours.ground));
    paintBoxes(this.map, this.view, width, height, pixels, this.fills, this.edges);
    this.named = namedBoxes(this.map, this.view, this.innerWidth(), this.innerHeight());
    this.live = liveColumns(this.map, this.view.time, Math.floor(this.innerWidth()));
    this.draw();
  }

  // Many moves may come before the next frame.
  later(draw) {
    const waits = this.wanted !== undefined;
    this.wanted = this.wanted === 'all' ? 'all' : draw;
    if (!waits) requestAnimationFrame(() => {
      const wanted = this.wanted;
      this.wanted = undefined;
      if (wanted === 'all') this.drawAll(); else this.draw();
    });
  }

  draw() {
    const context = this.context;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = this.colours.ground;
    context.fillRect(0, 0, this.width, this.height);
    context.putImageData(this.image, Math.round(gutter * this.ratio), Math.round(mapTop * this.ratio));
    this.drawNames();
    this.drawStrip();
    this.drawMarks();
    this.drawAxes();
    if (this.chosen >= 0) this.drawChosen();
  }

  text(words, x, y, align, paint) {
    this.context.textAlign = align;
    this.context.fillStyle = paint;
    this.context.fillText(words, x, y);
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

  drawNames() {
    for (const [i, box] of this.named) {
      const fit = Math.floor((box.right - box.left - 6) / 7);
      this.text(this.map.names[i].slice(0, fit), gutter + box.left + 3, mapTop + box.top + 12, 'left', this.colours.ink);
    }
  }

  drawStrip() {
    const base = stripTop + stripHeight, whole = Math.max(1, this.map.bytes);
    this.context.fillStyle = this.colours.area;
    this.live.forEach((bytes, x) => {
      const height = Math.min(1, bytes / whole) * stripHeight;
      this.context.fillRect(gutter + x, base - height, 1, height);
    });
    this.rule(gutter, base + .5, gutter + this.innerWidth(), base + .5, this.colours.line);
    this.text('live', gutter - 8, base - stripHeight / 2 + 4, 'right', this.colours.muted);
    for (const mark of this.map.marks) {
      const y = base - Math.min(1, mark.bytes / whole) * stripHeight;
      this.rule(gutter, y, gutter + this.innerWidth(), y, this.colours.warn, [3, 4]);
    }
  }

  drawMarks() {
    for (const mark of this.map.marks) {
      const share = this.view.addresses.share(mark.bytes);
      if (share < 0 || share > 1) continue;
      const y = mapTop + (1 - share) * this.innerHeight(), words = mark.label + ' ' + bytesText(mark.bytes);
      const right = gutter + this.innerWidth() - 4, below = y + 20 < mapTop + this.innerHeight();
      const width = this.context.measureText(words).width;
      this.rule(gutter, y, gutter + this.innerWidth(), y, this.colours.warn, [6, 4]);
      this.context.fillStyle = this.colours.ground;
      this.context.fillRect(right - width - 4, below ? y + 2 : y - 18, width + 8, 16);
      this.text(words, right, below ? y + 14 : y - 6, 'right', this.colours.ink);
    }
  }

  drawAxes() {
    const {time, addresses} = this.view, bottom = mapTop + this.innerHeight();
    this.rule(gutter - .5, mapTop, gutter - .5, bottom, this.colours.line);
    this.rule(gutter, bottom + .5, gutter + this.innerWidth(), bottom + .5, this.colours.line);
    for (let i = 0; i <= 4; ++i)
      this.text(bytesText(Math.round(addresses.at(i / 4))), gutter - 8, bottom - i / 4 * this.innerHeight() + (i === 4 ? 10 : i === 0 ? 0 : 4), 'right',
                this.colours.muted);
    this.text('step ' + Math.floor(time.begin), gutter, bottom + 17, 'left', this.colours.muted);
    this.text('step ' + Math.ceil(time.end), gutter + this.innerWidth(), bottom + 17, 'right', this.colours.muted);
  }

  drawChosen() {
    const box = boxPixels(this.map, this.chosen, this.view, this.innerWidth(), this.innerHeight());
    if (!box) return;
    this.context.strokeStyle = this.colours.ink;
    this.context.lineWidth = 2;
    this.context.strokeRect(gutter + box.left, mapTop + box.top, box.right - box.left, box.bottom - box.top);
    this.context.lineWidth = 1;
  }

  // ---- Telling of a box, or of a step.

  choose(i, x, y) {
    if (this.chosen !== i) this.later('frame');
    this.chosen = i;
    this.tell(i < 0 ? '' : boxText(this.map, i), x, y);
  }

  tell(words, x, y) {
    if (this.tip.textContent !== words) this.tip.textContent = words;
    this.tip.hidden = words === '';
    if (words === '') return;
    const right = x + 16 + this.tip.offsetWidth > this.width, down = y + 16 + this.tip.offsetHeight > this.height;
    this.tip.style.left = Math.max(2, right ? x - 12 - this.tip.offsetWidth : x + 16) + 'px';
    this.tip.style.top = Math.max(2, down ? y - 12 - this.tip.offsetHeight : y + 16) + 'px';
  }

  // Brings a box into view and tells of it, as a pointer would.
  visit(i) {
    const {time, addresses} = this.view;
    time.reveal(this.map.begin[i], this.map.end[i]);
    addresses.reveal(this.map.offset[i], this.map.top[i]);
    this.later('all');
    const box = boxPixels(this.map, i, this.view, this.innerWidth(), this.innerHeight());
    if (box) this.choose(i, gutter + (box.left + box.right) / 2, mapTop + (box.top + box.bottom) / 2);
  }

  point(x, y) {
    const across = (x - gutter) / this.innerWidth(), up = 1 - (y - mapTop) / this.innerHeight();
    const step = Math.floor(this.view.time.at(across));
    if (across < 0 || across >= 1) return this.choose(-1);
    if (up > 0 && up <= 1) return this.choose(boxAt(this.map, this.view.time.at(across), this.view.addresses.at(up)), x, y);
    this.choose(-1);
    if (up > 1) this.tell(this.stepText(step), x, y);
  }

  stepText(step) {
    const name = this.map.steps[step - this.map.from];
    return 'step ' + step + (name ? ': ' + name : '') + '\n' + bytesText(liveAt(this.map, step)) + ' live';
  }

  // ---- Pointer and keys.

  zoom(factor, x = .5, y = .5, axes = {}) {
    if (!axes.altKey) this.view.time.scale(factor, x);
    if (!axes.shiftKey) this.view.addresses.scale(factor, y);
    this.choose(-1);
    this.later('all');
  }

  move(x, y) {
    this.view.time.move(x);
    this.view.addresses.move(y);
    this.choose(-1);
    this.later('all');
  }

  showAll() {
    this.view.time.reset();
    this.view.addresses.reset();
    this.choose(-1);
    this.later('all');
  }

  step(by) {
    const count = this.map.begin.length;
    if (count === 0) return;
    this.kept = this.kept === undefined ? (by > 0 ? 0 : count - 1) : (this.kept + by + count) % count;
    this.visit(this.kept);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey) return;
    const moves = {ArrowLeft: [-.1, 0], ArrowRight: [.1, 0], ArrowUp: [0, .1], ArrowDown: [0, -.1]};
    const zooms = {'+': 1.25, '=': 1.25, '-': .8, '_': .8, '\u2212': .8};
    const others = {0: () => this.showAll(), n: () => this.step(1), p: () => this.step(-1), Escape: () => this.choose(-1)};
    if (moves[event.key]) this.move(...moves[event.key]);
    else if (zooms[event.key]) this.zoom(zooms[event.key], .5, .5, {altKey: event.altKey});
    else if (others[event.key] || others[event.key.toLowerCase()]) (others[event.key] || others[event.key.toLowerCase()])();
    else return;
    event.preventDefault();
  }

  wheel(event) {
    event.preventDefault();
    const x = (event.offsetX - gutter) / this.innerWidth(), y = 1 - (event.offsetY - mapTop) / this.innerHeight();
    const turned = event.deltaY || event.deltaX;  // with Shift some turn sideways
    this.zoom(Math.exp(-Math.sign(turned) * .2), Math.min(1, Math.max(0, x)), Math.min(1, Math.max(0, y)), event);
  }

  drag(event) {
    if (this.dragged) {
      this.move((this.dragged.x - event.clientX) / this.innerWidth(), (event.clientY - this.dragged.y) / this.innerHeight());
      this.dragged = {x: event.clientX, y: event.clientY};
    } else {
      this.point(event.offsetX, event.offsetY);
    }
  }

  find(part) {
    const found = part === '' ? -1 : findBox(this.map, part, this.found ?? -1);
    this.said.textContent = part === '' ? '' : found < 0 ? 'no such name' : this.map.names[found];
    if (found >= 0) this.visit(this.kept = this.found = found);
  }

  listen(root) {
    const actions = {closer: () => this.zoom(1.5), farther: () => this.zoom(1 / 1.5), all: () => this.showAll()};
    for (const button of root.querySelectorAll('[data-do]')) button.addEventListener('click', actions[button.dataset.do]);
    root.querySelector('input').addEventListener('keydown', (event) => { if (event.key === 'Enter') this.find(event.target.value); });
    const on = (name, act) => this.canvas.addEventListener(name, act, {passive: false});
    on('keydown', (event) => this.key(event));
    on('wheel', (event) => this.wheel(event));
    on('pointermove', (event) => this.drag(event));
    on('pointerleave', () => this.choose(-1));
    on('pointerdown', (event) => { this.dragged = {x: event.clientX, y: event.clientY}; this.canvas.setPointerCapture(event.pointerId); });
    on('pointerup', (event) => { this.dragged = undefined; this.point(event.offsetX, event.offsetY); });
    on('pointercancel', () => { this.dragged = undefined; });
    on('blur', () => this.choose(-1));
  }
}

function start() {
  startTheme();
  startTables();
  for (const root of document.querySelectorAll('.map')) new MapFigure(root);
}
)js";

}  // namespace berth::page
