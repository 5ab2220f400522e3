// SPDX-License-Identifier: MIT OR Apache-2.0
// The plots of the page, each with its list of views, and tables that are sorted by a click on a column's name.
'use strict';

function show(plot, figure, index) {
  const view = figure.choices[index];
  // A copy: the plotting library writes into what it gets.
  const {data, layout} = JSON.parse(JSON.stringify({data: view.traces, layout: view.layout}));
  return Plotly.react(plot, data, layout, {responsive: true, displaylogo: false});
}

function draw(plot) {
  const figure = JSON.parse(document.getElementById(`data-${plot.id}`).textContent);
  const list = document.getElementById(`choose-${plot.id}`);
  if (list !== null) list.addEventListener('change', () => show(plot, figure, Number(list.value)));
  return show(plot, figure, list === null ? 0 : Number(list.value));
}

function order(a, b) {
  if (a === b) return 0;
  if (a === '') return 1;  // nothing comes last, in either direction
  if (b === '') return -1;
  const x = Number(a), y = Number(b);
  return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, 'en', {numeric: true}) : x - y;
}

function sortBy(head, column) {
  const table = head.closest('table');
  const down = head.getAttribute('aria-sort') === 'ascending';
  for (const other of table.querySelectorAll('th')) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const key = row => row.cells[column].dataset.order;
  const rows = [...table.tBodies[0].rows].sort((a, b) => {
    const found = order(key(a), key(b));
    return down && key(a) !== '' && key(b) !== '' ? -found : found;
  });
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll('table')) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = head.querySelector('button');
    if (button !== null) button.addEventListener('click', () => sortBy(head, column));
  });
}

// One after the other, those in sight first; the document says when all are there.
(async () => {
  for (const plot of document.querySelectorAll('.plot')) await draw(plot);
  document.documentElement.dataset.drawn = 'all';
})();
