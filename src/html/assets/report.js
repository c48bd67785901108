// SPDX-License-Identifier: Apache-2.0
// Formatting of bytes and counts, the light and the dark theme, and tables that can be sorted and searched.

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

// As text::bytes: three significant digits, without trailing zeros.
function bytesText(count) {
  let value = Number(count), unit = 0;
  while (value >= (unit === 0 ? 1024 : 1023.5) && unit + 1 < units.length) { value /= 1024; ++unit; }
  const decimals = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const digits = value.toFixed(decimals);
  return (decimals > 0 ? digits.replace(/\.?0+$/, '') : digits) + ' ' + units[unit];
}

// 1234567 as 1,234,567. Integers too large for a number are passed as strings of digits.
function countText(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

function exactBytes(count) {
  return Number(count) < 1024 ? bytesText(count) : bytesText(count) + ' (' + countText(count) + ' bytes)';
}

// In the largest unit with a value of at least 1.
function durationText(ns) {
  const steps = [['ns', 1], ['µs', 1e3], ['ms', 1e6], ['s', 1e9], ['min', 60e9], ['h', 3600e9], ['d', 86400e9]];
  let [unit, length] = steps[0];
  for (const [name, size] of steps) if (ns >= size) [unit, length] = [name, size];
  const value = ns / length;
  return (value >= 100 || unit === 'ns' ? value.toFixed(0) : value.toPrecision(3).replace(/\.?0+$/, '')) + ' ' + unit;
}

// ---- Themes.

const repaints = [];  // called to redraw when the theme changes

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function startTheme() {
  const button = document.getElementById('theme');
  const repaint = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    repaints.forEach((paint) => paint());
  };
  button.addEventListener('click', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    repaint();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
  repaint();
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

// ---- Tables.

// Three-way comparison; as numbers, an empty key is smaller than all others.
function compareKeys(a, b, asNumber) {
  if (!asNumber) return a < b ? -1 : a > b ? 1 : 0;
  const x = a === '' ? -Infinity : Number(a), y = b === '' ? -Infinity : Number(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

function cellKey(row, column) {
  const cell = row.cells[column];
  return cell.dataset.key ?? cell.textContent;
}

// The first click sorts numbers in descending and words in ascending order; the next one reverses.
function sortTable(table, column) {
  const heading = table.tHead.rows[0].cells[column];
  const asNumber = 'number' in heading.dataset, before = heading.getAttribute('aria-sort');
  const down = before ? before === 'ascending' : asNumber;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => (down ? -1 : 1) * compareKeys(cellKey(a, column), cellKey(b, column), asNumber));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  table.tBodies[0].append(...rows);
}

// Hides the rows that do not contain every word.
function searchTable(table, text, said) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word !== '');
  let left = 0;
  for (const row of table.tBodies[0].rows) {
    const all = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => all.includes(word));
    if (!row.hidden) ++left;
  }
  said.textContent = words.length === 0 ? '' : countText(left) + ' of ' + countText(table.tBodies[0].rows.length);
}

function startTables() {
  for (const table of document.querySelectorAll('table.sorts')) {
    [...table.tHead.rows[0].cells].forEach((heading, column) =>
      heading.querySelector('button').addEventListener('click', () => sortTable(table, column)));
    const search = table.closest('section').querySelector('input[type=search]');
    search?.addEventListener('input', () => searchTable(table, search.value, search.closest('.tools').querySelector('output')));
  }
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.matches('input')) return;
    const search = document.querySelector('section.table input[type=search]');
    if (!search) return;
    event.preventDefault();
    search.focus();
  });
}
