// SPDX-License-Identifier: Apache-2.0
#include "page/script.h"

namespace berth::page {

const std::string_view kPageScript = R"js(
const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

// As text::bytes: three digits that matter, nothing after a round number.
function bytesText(count) {
  let value = Number(count), unit = 0;
  while (value >= (unit === 0 ? 1024 : 1023.5) && unit + 1 < units.length) { value /= 1024; ++unit; }
  const decimals = unit === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  const digits = value.toFixed(decimals);
  return (decimals > 0 ? digits.replace(/\.?0+$/, '') : digits) + ' ' + units[unit];
}

const repaints = [];  // what is drawn in colours, and has to be drawn again in others

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function startTheme() {
  const repaint = () => repaints.forEach((paint) => paint());
  document.getElementById('theme').addEventListener('click', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    repaint();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', repaint);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

// Less than, equal or more, as numbers where both are.
function compareKeys(a, b, asNumber) {
  if (!asNumber) return a < b ? -1 : a > b ? 1 : 0;
  const x = a === '' ? Infinity : Number(a), y = b === '' ? Infinity : Number(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

function cellKey(row, column) {
  const cell = row.cells[column];
  return cell.dataset.key ?? cell.textContent;
}

function sortTable(table, column) {
  const heading = table.tHead.rows[0].cells[column];
  const down = heading.getAttribute('aria-sort') === 'ascending';
  const asNumber = 'number' in heading.dataset;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => (down ? -1 : 1) * compareKeys(cellKey(a, column), cellKey(b, column), asNumber));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  table.tBodies[0].append(...rows);
}

function startTables() {
  for (const table of document.querySelectorAll('table.sorts'))
    [...table.tHead.rows[0].cells].forEach((heading, column) =>
      heading.querySelector('button').addEventListener('click', () => sortTable(table, column)));
}
)js";

}  // namespace berth::page
