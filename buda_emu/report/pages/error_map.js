'use strict';
// A map of errors: its shades by decades or in equal steps, and the figure of the tile that is pointed at.
const errorMap = figure => {
  const svg = figure.querySelector('svg.error-map');
  if (!svg) return;
  const cells = [...svg.querySelectorAll('.cell[data-log]')], menu = make('select', ''), told = make('span', 'soft', 'point at a tile for its error');
  menu.setAttribute('aria-label', 'scale of the shades');
  menu.append(new Option('shades: each ten times the one before', 'log'), new Option('shades: equal steps', 'linear'));
  menu.value = svg.classList.contains('by-log') ? 'log' : 'linear';
  menu.onchange = () => {
    svg.classList.toggle('by-log', menu.value === 'log');
    svg.classList.toggle('by-linear', menu.value === 'linear');
    for (const cell of cells) cell.setAttribute('class', `cell h${cell.dataset[menu.value]}`);
  };
  told.setAttribute('role', 'status');
  svg.addEventListener('pointerover', event => {
    const title = event.target.querySelector('title');
    if (title) told.textContent = title.textContent;
  });
  const bar = make('div', 'bar');
  if (cells.length) bar.append(menu);
  bar.append(told);
  svg.before(bar);
};
