// SPDX-License-Identifier: Apache-2.0
#include "page/script.h"

namespace berth::page {

const std::string_view kViewScript = R"js(
// The map of page/address_map.h with its numbers as arrays of doubles. What is too large for one is a string, and stays one for showing.
function readMap(json) {
  const map = JSON.parse(json);
  const numbers = (list) => Float64Array.from(list, Number);
  const begin = numbers(map.begin), offset = numbers(map.offset), bytes = numbers(map.size);
  return {
    ...map, begin, offset, offsets: map.offset, end: numbers(map.end), top: bytes.map((size, i) => offset[i] + size), tone: Uint8Array.from(map.tone),
    liveSteps: numbers(map.live_steps), liveBytes: numbers(map.live_bytes), bytes: Number(map.bytes),
    marks: map.marks.map(([label, level]) => ({label, bytes: Number(level)})),
  };
}

// A range inside [low, high) that can be moved and scaled, down to `least`.
class Range {
  constructor(low, high, least) { Object.assign(this, {low, high: Math.max(high, low + least), least}); this.reset(); }
  reset() { this.begin = this.low; this.end = this.high; }
  length() { return this.end - this.begin; }
  at(share) { return this.begin + share * this.length(); }
  share(value) { return (value - this.begin) / this.length(); }

  // Moves by a part of what is seen.
  move(share) { this.place(this.begin + share * this.length(), this.length()); }

  // Keeps what lies at `share` where it is.
  scale(factor, share) {
    const length = Math.min(Math.max(this.length() / factor, this.least), this.high - this.low);
    this.place(this.at(share) - share * length, length);
  }

  place(begin, length) {
    this.begin = Math.min(Math.max(begin, this.low), this.high - length);
    this.end = this.begin + length;
  }

  // Shows all of [from, to), in the middle.
  reveal(from, to) {
    if (from >= this.begin && to <= this.end) return;
    const length = Math.min(Math.max(this.length(), to - from), this.high - this.low);
    this.place((from + to - length) / 2, length);
  }
}

// Not so close that doubles could not tell addresses apart.
function makeView(map) {
  const least = Math.max(map.bytes / 2 ** 40, Math.min(16, Math.max(map.bytes, 1)));
  return {time: new Range(map.from, map.to, 1), addresses: new Range(0, map.bytes, least)};
}

// A box in pixels, at least one in each direction; null when it is not in view.
function boxPixels(map, i, view, width, height) {
  const {time, addresses} = view;
  if (map.end[i] <= time.begin || map.begin[i] >= time.end || map.top[i] <= addresses.begin || map.offset[i] >= addresses.end) return null;
  const left = Math.max(0, Math.floor(time.share(map.begin[i]) * width));
  const bottom = Math.min(height, height - Math.floor(addresses.share(map.offset[i]) * height));
  const right = Math.min(width, Math.max(left + 1, Math.floor(time.share(map.end[i]) * width)));
  const top = Math.max(0, Math.min(bottom - 1, height - Math.floor(addresses.share(map.top[i]) * height)));
  return {left, top, right, bottom};
}

// Boxes do not overlap, so that this takes time for the boxes and the pixels, however they are sized.
function paintBoxes(map, view, width, height, pixels, fills, edges) {
  for (let i = 0; i < map.begin.length; ++i) {
    const box = boxPixels(map, i, view, width, height);
    if (!box) continue;
    const fill = fills[map.tone[i]];
    for (let y = box.top; y < box.bottom; ++y) pixels.fill(fill, y * width + box.left, y * width + box.right);
    if (box.right - box.left > 3 && box.bottom - box.top > 3) paintEdge(box, width, pixels, edges[map.tone[i]]);
  }
}

function paintEdge(box, width, pixels, edge) {
  pixels.fill(edge, box.top * width + box.left, box.top * width + box.right);
  for (let y = box.top; y < box.bottom; ++y) pixels[y * width + box.right - 1] = edge;
}

// Those in view that have room for a name, with their pixels.
function namedBoxes(map, view, width, height) {
  const named = [];
  for (let i = 0; i < map.begin.length; ++i) {
    const box = boxPixels(map, i, view, width, height);
    if (box && box.right - box.left >= 40 && box.bottom - box.top >= 14) named.push([i, box]);
  }
  return named;
}

// '#rrggbb' as a pixel in memory, with red first; `shade` makes it darker.
function pixel(hex, shade = 1) {
  const part = (at) => Math.round(parseInt(hex.slice(at, at + 2), 16) * shade);
  return (255 << 24 | part(5) << 16 | part(3) << 8 | part(1)) >>> 0;
}

// The box at a step and an address, or -1.
function boxAt(map, step, address) {
  for (let i = 0; i < map.begin.length; ++i)
    if (map.begin[i] <= step && step < map.end[i] && map.offset[i] <= address && address < map.top[i]) return i;
  return -1;
}

// The most live bytes in each of `width` equal parts of the time in view.
function liveColumns(map, time, width) {
  const most = new Float64Array(width);
  for (let i = 0; i < map.liveSteps.length; ++i) {
    const from = Math.max(0, Math.floor(time.share(map.liveSteps[i]) * width));
    const until = i + 1 < map.liveSteps.length ? map.liveSteps[i + 1] : map.to;
    const to = Math.min(width, Math.ceil(time.share(until) * width));
    for (let x = from; x < to; ++x) most[x] = Math.max(most[x], map.liveBytes[i]);
  }
  return most;
}

function liveAt(map, step) {
  let low = 0, high = map.liveSteps.length;  // the first point after `step` lies in [low, high]
  while (low < high) {
    const middle = (low + high) >> 1;
    if (map.liveSteps[middle] <= step) low = middle + 1; else high = middle;
  }
  return low === 0 ? 0 : map.liveBytes[low - 1];
}

function lifeText(map, i) {
  const last = map.end[i] - 1;
  return last <= map.begin[i] ? 'step ' + map.begin[i] : 'steps ' + map.begin[i] + ' to ' + last;
}

function boxText(map, i) {
  const lines = [map.names[i], bytesText(map.size[i]) + ' (' + map.size[i] + ' bytes) at ' + map.offsets[i], lifeText(map, i)];
  const maker = map.steps[map.begin[i] - map.from];
  if (maker) lines.push('made by ' + maker);
  if (map.notes[i]) lines.push(map.notes[i]);
  return lines.join('\n');
}

// The next box from `after` on, round and round, whose name holds `part`; -1 when none does.
function findBox(map, part, after) {
  const wanted = part.toLowerCase(), count = map.names.length;
  for (let k = 1; k <= count; ++k) {
    const i = (after + k) % count;
    if (map.names[i].toLowerCase().includes(wanted)) return i;
  }
  return -1;
}
)js";

}  // namespace berth::page
