// SPDX-License-Identifier: Apache-2.0
// The address map: time from left to right, addresses from bottom to top, a box for everything that held bytes
// for some time.

const chunk = 256;  // boxes that are skipped together if all of them have ended

// The map of html/address_map.h, its boxes sorted by begin. Integers that a JavaScript number cannot hold are
// also in `exact`, as text to show.
function readMap(data) {
  const begin = sums(unpack(data.begin)), places = {offset: sums(unpack(data.place_offsets)), bytes: unpack(data.place_bytes)};
  const end = unpack(data.lives).map((life, i) => begin[i] + life), place = Uint32Array.from(unpack(data.places));
  const offset = Float64Array.from(place, (at) => places.offset[at]), size = Float64Array.from(place, (at) => places.bytes[at]);
  const ends = new Float64Array(Math.ceil(end.length / chunk));
  end.forEach((step, i) => { ends[Math.floor(i / chunk)] = Math.max(ends[Math.floor(i / chunk)], step); });
  const tag = data.tag && Uint16Array.from(unpack(data.tag)), tone = tag ? tag.map((at) => data.tag_tones[at]) : unpack(data.tone);
  return {
    ...data, begin, end, offset, size, top: size.map((bytes, i) => offset[i] + bytes), ends, bytes: Number(data.bytes),
    tag, tone: Uint8Array.from(tone), ids: data.ids && sums(unpack(data.ids).map(unfold)),
  };
}

function boxName(map, i) { return map.names?.[i] ?? map.noun + ' ' + map.ids[i]; }

function tagName(map, i) { return map.tag && map.tag_noun ? map.tags[map.tag[i]] : ''; }

function lifeText(map, i) {
  const last = map.end[i] - 1, count = map.end[i] - map.begin[i];
  if (count <= 1) return map.step + ' ' + countText(map.begin[i]);
  return map.step + 's ' + countText(map.begin[i]) + ' to ' + countText(last) + ' (' + countText(count) + ')';
}

function boxRows(map, i) {
  const rows = [['size', exactBytes(map.exact['size ' + i] ?? map.size[i])]];
  if (tagName(map, i)) rows.push([map.tag_noun, tagName(map, i), map.tone[i]]);
  rows.push(['at', countText(map.exact['offset ' + i] ?? map.offset[i])], ['lives', lifeText(map, i)]);
  const maker = map.steps[map.begin[i] - map.from];
  if (maker) rows.push(['made by', maker]);
  if (map.notes[i]) rows.push(['note', map.notes[i]]);
  return rows;
}

// Calls `visit` for the boxes that are live within [from, to).
function eachAlive(map, from, to, visit) {
  const stop = lastNotAbove(map.begin, to) + 1;
  for (let first = 0; first < stop; first += chunk) {
    if (map.ends[first / chunk] <= from) continue;
    for (let i = first, last = Math.min(stop, first + chunk); i < last; ++i)
      if (map.end[i] > from && map.begin[i] < to) visit(i);
  }
}

// The next box after `after`, wrapping around, whose name or tag contains `part`; -1 if there is none.
function findBox(map, part, after) {
  const wanted = part.toLowerCase(), count = map.begin.length;
  for (let k = 1; k <= count; ++k) {
    const i = (after + k) % count;
    if ((boxName(map, i) + '\n' + tagName(map, i)).toLowerCase().includes(wanted)) return i;
  }
  return -1;
}

class MapFigure extends Figure {
  constructor(root) {
    super(root, 8);
    this.map = readMap(this.data);
    // Limits the zoom to what floating-point numbers can resolve.
    const least = Math.max(this.map.bytes / 2 ** 40, Math.min(16, Math.max(this.map.bytes, 1)));
    this.time = this.ranges.x = sharedTime(this.map.from, this.map.to);
    this.addresses = this.ranges.y = new Range(0, this.map.bytes, least);
    this.chosen = -1;  // the box that the tooltip describes
    this.keys = {n: () => this.step(1), p: () => this.step(-1)};
    const search = root.querySelector('input');
    search.addEventListener('keydown', (event) => { if (event.key === 'Enter') this.find(search.value); });
    this.begin();
  }

  // ---- Drawing.

  // A box in pixels, at least one wide and one high.
  place(i, width, height) {
    const {map, time, addresses} = this, left = Math.floor(time.share(map.begin[i]) * width);
    const bottom = Math.min(height, height - Math.floor(addresses.share(map.offset[i]) * height));
    return {
      left: Math.max(0, left), right: Math.min(width, Math.max(left + 1, Math.floor(time.share(map.end[i]) * width))),
      bottom, top: Math.max(0, Math.min(bottom - 1, height - Math.floor(addresses.share(map.top[i]) * height))),
    };
  }

  // The loop over all boxes. It allocates no objects and makes few calls, because there may be a quarter of a
  // million boxes in every frame.
  paint(pixels, width, height) {
    const {begin, end, offset, top, tone} = this.map, {begin: from, end: to} = this.time, {begin: low, end: high} = this.addresses;
    const perStep = width / (to - from), perByte = height / (high - low), ground = pixels[0] ?? 0;
    if (this.cover?.length !== pixels.length) this.cover = new Float32Array(pixels.length);
    this.cover.fill(0);
    this.named = [];
    let thin = false;
    eachAlive(this.map, from, to, (i) => {
      if (top[i] <= low || offset[i] >= high) return;
      const x = (begin[i] - from) * perStep, share = (end[i] - begin[i]) * perStep, left = Math.floor(x);
      const bottom = Math.min(height, height - Math.floor((offset[i] - low) * perByte));
      const upper = Math.max(0, Math.min(bottom - 1, height - Math.floor((top[i] - low) * perByte)));
      thin ||= share < 1;
      if (share < 1) this.paintThin(pixels, width, left, upper, bottom, share, this.fills[tone[i]], ground);
      else this.paintBox(pixels, width, Math.max(0, left), Math.min(width, Math.max(left + 1, Math.floor(x + share))), upper, bottom, i);
    });
    if (thin) this.paintCover(pixels, ground);
  }

  paintBox(pixels, width, left, right, top, bottom, i) {
    const fill = this.fills[this.map.tone[i]], edge = this.edges[this.map.tone[i]];
    for (let row = top * width; row < bottom * width; row += width) {
      if (right - left > 24) pixels.fill(fill, row + left, row + right);
      else for (let at = row + left; at < row + right; ++at) pixels[at] = fill;
    }
    if (right - left <= 3 || bottom - top <= 3) return;
    pixels.fill(edge, top * width + left, top * width + right);
    for (let y = top; y < bottom; ++y) pixels[y * width + right - 1] = edge;
    if (right - left >= 44 * this.ratio && bottom - top >= 15 * this.ratio) this.named.push([i, {left, right, top, bottom}]);
  }

  // A box shorter than a pixel is blended by the share of the pixel that it covers.
  paintThin(pixels, width, left, top, bottom, share, fill, ground) {
    if (left < 0) return;
    for (let at = top * width + left, end = bottom * width; at < end; at += width) {
      if (this.cover[at] === 0 && pixels[at] !== ground) continue;
      this.cover[at] += share;
      pixels[at] = fill;
    }
  }

  paintCover(pixels, ground) {
    for (let at = 0; at < pixels.length; ++at)
      if (this.cover[at] > 0 && this.cover[at] < 1) pixels[at] = blend(pixels[at], ground, Math.max(48, this.cover[at] * 256));
  }

  decorate() {
    for (const [i, box] of this.named) {
      const fit = Math.floor(((box.right - box.left) / this.ratio - 6) / 7), words = this.map.names ? boxName(this.map, i) : tagName(this.map, i);
      this.text(words.slice(0, fit), gutter + box.left / this.ratio + 4, this.top + box.top / this.ratio + 13, 'left', this.colours.ink);
    }
    for (const [label, level] of this.map.marks) this.drawMark(label + ' ' + bytesText(level), Number(level), this.colours.warn);
    for (const [at, bytes] of this.map.folds) this.drawMark(bytesText(bytes) + ' of addresses without blocks left out', at, this.colours.muted);
    this.drawByteAxis(this.addresses.begin, this.addresses.end);
    this.drawTimeAxis(this.time, this.map.step);
    this.drawCursor(this.time);
    if (this.chosen >= 0) this.drawChosen();
  }

  drawMark(words, bytes, paint) {
    const share = this.addresses.share(bytes);
    if (share < 0 || share > 1) return;
    const y = this.top + (1 - share) * this.innerHeight(), below = y + 20 < this.top + this.innerHeight();
    this.rule(gutter, y, gutter + this.innerWidth(), y, paint, [6, 4]);
    this.label(words, gutter + this.innerWidth() - 4, below ? y + 14 : y - 6, 'right');
  }

  drawChosen() {
    const box = this.place(this.chosen, this.innerWidth(), this.innerHeight());
    if (box.left >= box.right || box.top >= box.bottom) return;
    this.context.strokeStyle = this.colours.ink;
    this.context.lineWidth = 2;
    this.context.strokeRect(gutter + box.left, this.top + box.top, box.right - box.left, box.bottom - box.top);
    this.context.lineWidth = 1;
  }

  // ---- The tooltip of a box.

  choose(i, x, y) {
    if (this.chosen !== i) this.later('frame');
    this.chosen = i;
    if (i < 0) super.quiet(); else this.tell(boxName(this.map, i), boxRows(this.map, i), x, y);
  }

  quiet() { this.choose(-1); }

  // Chooses the box that covers most of the pixel.
  point(x, y) {
    const {across, up} = this.inside(x, y), address = this.addresses.at(up);
    if (across < 0 || across >= 1 || up <= 0 || up > 1) return this.quiet();
    const from = this.time.at(across), to = this.time.at(across + 1 / this.innerWidth());
    let best = -1, longest = 0;
    eachAlive(this.map, from, to, (i) => {
      if (this.map.offset[i] > address || this.map.top[i] <= address) return;
      const share = Math.min(this.map.end[i], to) - Math.max(this.map.begin[i], from);
      if (share > longest) [best, longest] = [i, share];
    });
    this.choose(best, x, y);
  }

  // Describes the largest box that is live at a step.
  largestAt(step) {
    let best = -1;
    eachAlive(this.map, step, step + 1, (i) => { if (best < 0 || this.map.size[i] > this.map.size[best]) best = i; });
    return best < 0 ? '' : boxName(this.map, best) + ', ' + bytesText(this.map.size[best]);
  }

  // Scrolls a box into view and shows its tooltip, as hovering would.
  visit(i) {
    this.time.reveal(this.map.begin[i], this.map.end[i]);
    this.addresses.reveal(this.map.offset[i], this.map.top[i]);
    this.time.changed();
    const box = this.place(i, this.innerWidth(), this.innerHeight());
    this.choose(i, gutter + (box.left + box.right) / 2, this.top + (box.top + box.bottom) / 2);
  }

  step(by) {
    const count = this.map.begin.length;
    if (count === 0) return;
    this.kept = this.kept === undefined ? (by > 0 ? 0 : count - 1) : (this.kept + by + count) % count;
    this.visit(this.kept);
  }

  find(part) {
    const found = part === '' ? -1 : findBox(this.map, part, this.kept ?? -1);
    this.said.textContent = part === '' ? '' : found < 0 ? 'no such name' : boxName(this.map, found);
    if (found >= 0) this.visit(this.kept = found);
  }
}
