// SPDX-License-Identifier: Apache-2.0
// The addresses of a pool at one moment, drawn in rows like text: the pieces, and who owns them.

const live = 0, waiting = 1, free = 2, slab = 3;  // html::PieceKind
const rowHeight = 20, rowGap = 4;                 // CSS pixels

// The map of html/range_map.h, its pieces sorted by address.
function readRange(data) {
  const offset = sums(unpack(data.offsets)), size = unpack(data.bytes_of), tag = unpack(data.tag);
  return {
    ...data, offset, size, tag, top: size.map((bytes, i) => offset[i] + bytes), slack: unpack(data.slack), ages: unpack(data.ages),
    streams: unpack(data.streams), site: unpack(data.site), kinds: unpack(data.kinds), tone: tag.map((at) => data.tag_tones[at]),
  };
}

function pieceName(map, i) {
  return {[live]: 'block', [waiting]: 'freed block, waiting for streams', [free]: 'free', [slab]: 'free between small blocks'}[map.kinds[i]];
}

// The address in the process: adds the folds below the piece.
function addressText(map, i) {
  const below = map.folds.filter(([at]) => at < map.offset[i]).at(-1);
  return '0x' + (map.base + map.offset[i] + (below?.[2] ?? 0)).toString(16);
}

function pieceRows(map, i) {
  const isBlock = map.kinds[i] === live || map.kinds[i] === waiting, rows = [['size', exactBytes(map.size[i] - (isBlock ? map.slack[i] : 0))]];
  if (isBlock && map.slack[i] > 0) rows.push(['takes', exactBytes(map.size[i])]);
  if (isBlock) rows.push(['tag', map.tags[map.tag[i]], map.tone[i]], ['site', map.sites[map.site[i]] || 'unknown']);
  if (isBlock) rows.push(['age', map.ages[i] > 0 ? durationText(map.ages[i]) : 'unknown']);
  if (map.streams[i] > 0) rows.push(['stream', String(map.streams[i])]);
  rows.push(['address', addressText(map, i)]);
  return rows;
}

class RangeFigure extends Figure {
  constructor(root) {
    super(root, 8);
    this.map = readRange(this.data);
    this.addresses = this.ranges.x = new Range(0, this.map.bytes, Math.min(4096, Math.max(this.map.bytes, 1)));
    this.movesUp = true;
    this.bottom = 8;
    this.chosen = -1;  // the piece that the tooltip describes
    this.keys = {n: () => this.step(1), p: () => this.step(-1)};
    const search = root.querySelector('input');
    search.addEventListener('keydown', (event) => { if (event.key === 'Enter') this.find(search.value); });
    this.begin();
  }

  rows() { return Math.max(1, Math.floor(this.innerHeight() / rowHeight)); }

  // ---- Drawing. All rows together are one line of pixels, broken at the ends of rows.

  paint(pixels, width, height) {
    const rows = this.rows(), {offset, top} = this.map, {begin, end} = this.addresses, perByte = rows * width / (end - begin);
    this.band = Math.round(rowHeight * this.ratio);
    this.bandFill = this.band - Math.round(rowGap * this.ratio);
    const empty = pixel(this.colours.panel);
    for (let row = 0; row < rows; ++row) this.fillRow(pixels, width, height, row, 0, width, empty, empty);
    for (let i = Math.max(0, lastNotAbove(offset, begin)); i < offset.length && offset[i] < end; ++i) {
      const from = Math.max(0, Math.floor((offset[i] - begin) * perByte));
      const to = Math.min(rows * width, Math.max(from + 1, Math.floor((top[i] - begin) * perByte)));
      this.paintPiece(pixels, width, height, i, from, to);
    }
  }

  paintPiece(pixels, width, height, i, from, to) {
    const kind = this.map.kinds[i], isFree = kind === free || kind === slab;
    const fill = isFree ? pixel(this.colours.faint, kind === slab ? .5 : 1, this.colours.ground) : this.fills[this.map.tone[i]];
    const second = kind === waiting ? pixel(this.colours.ground) : fill;  // waiting pieces are hatched
    for (let at = from; at < to;) {
      const row = Math.floor(at / width), stop = Math.min(to, (row + 1) * width);
      this.fillRow(pixels, width, height, row, at - row * width, stop - row * width, fill, second);
      at = stop;
    }
    if (to - from > 3 && !isFree) this.edge(pixels, width, height, to - 1, this.edges[this.map.tone[i]]);
  }

  fillRow(pixels, width, height, row, left, right, fill, second) {
    for (let y = row * this.band, stop = Math.min(height, y + this.bandFill); y < stop; ++y) {
      if (fill === second) pixels.fill(fill, y * width + left, y * width + right);
      else for (let x = left; x < right; ++x) pixels[y * width + x] = (x + y) % 6 < 2 ? second : fill;
    }
  }

  edge(pixels, width, height, at, paint) {
    const row = Math.floor(at / width), x = at - row * width;
    for (let y = row * this.band, stop = Math.min(height, y + this.bandFill); y < stop; ++y) pixels[y * width + x] = paint;
  }

  decorate() {
    const rows = this.rows();
    for (let row = 0; row < rows; row += 2)
      this.text(bytesText(Math.round(this.addresses.at(row / rows))), gutter - 8, this.top + row * rowHeight + 12, 'right', this.colours.muted);
    for (const [at, bytes] of this.map.folds) this.drawFold(at, bytes, rows);
    if (this.chosen >= 0) this.drawChosen(rows);
  }

  drawFold(at, bytes, rows) {
    const share = this.addresses.share(at) * rows;
    if (share < 0 || share >= rows) return;
    const words = bytesText(bytes) + ' without memory left out', half = this.context.measureText(words).width / 2 + 4;
    const x = gutter + Math.min(Math.max((share % 1) * this.innerWidth(), half), this.innerWidth() - half);
    this.label(words, x, this.top + Math.floor(share) * rowHeight + 12, 'center');
  }

  drawChosen(rows) {
    const from = Math.max(0, this.addresses.share(this.map.offset[this.chosen])) * rows, to = Math.min(1, this.addresses.share(this.map.top[this.chosen])) * rows;
    this.context.strokeStyle = this.colours.ink;
    this.context.lineWidth = 2;
    for (let row = Math.floor(from); row < to; ++row) {
      const left = Math.max(0, from - row) * this.innerWidth(), right = Math.min(1, to - row) * this.innerWidth();
      this.context.strokeRect(gutter + left, this.top + row * rowHeight, Math.max(1, right - left), rowHeight - rowGap);
    }
    this.context.lineWidth = 1;
  }

  // ---- The tooltip of a piece.

  choose(i, x, y) {
    if (this.chosen !== i) this.later('frame');
    this.chosen = i;
    if (i < 0) super.quiet(); else this.tell(pieceName(this.map, i), pieceRows(this.map, i), x, y);
  }

  quiet() { this.choose(-1); }

  // `across` is the position along all rows, one after another.
  inside(x, y) {
    const rows = this.rows(), row = Math.floor((y - this.top) / rowHeight), along = (x - gutter) / this.innerWidth();
    const isIn = row >= 0 && row < rows && along >= 0 && along < 1;
    return {across: isIn ? (row + along) / rows : -1, up: .5};
  }

  point(x, y) {
    const {across} = this.inside(x, y), address = this.addresses.at(across), i = lastNotAbove(this.map.offset, address);
    this.choose(across >= 0 && i >= 0 && address < this.map.top[i] ? i : -1, x, y);
  }

  move(by) { this.each((range) => range.move(by.x / this.rows() - by.y)); }

  visit(i) {
    this.addresses.reveal(this.map.offset[i], this.map.top[i]);
    this.addresses.changed();
    const along = this.addresses.share((this.map.offset[i] + this.map.top[i]) / 2) * this.rows();
    this.choose(i, gutter + (along % 1) * this.innerWidth(), this.top + Math.floor(along) * rowHeight + 8);
  }

  // Goes to the next or previous piece for which `wanted` is true, wrapping around.
  seek(by, wanted) {
    const count = this.map.offset.length;
    for (let k = 1; k <= count; ++k) {
      const i = (((this.kept ?? (by > 0 ? -1 : count)) + by * k) % count + count) % count;
      if (wanted(i)) { this.visit(this.kept = i); return i; }
    }
    return -1;
  }

  step(by) { this.seek(by, (i) => this.map.kinds[i] === live); }

  find(part) {
    const wanted = part.toLowerCase(), {map} = this;
    const found = part === '' ? -1 : this.seek(1, (i) => map.kinds[i] <= waiting && (map.tags[map.tag[i]] + '\n' + map.sites[map.site[i]]).toLowerCase().includes(wanted));
    this.said.textContent = part === '' ? '' : found < 0 ? 'no such tag or site' : map.tags[map.tag[found]];
  }
}
