// Tables that sort, filter and search; rows that stand for an op choose it.
const make = (kind, css, text = '') => Object.assign(document.createElement(kind), {className: css, textContent: text});
const NARROW = matchMedia('(max-width: 600px)');

const liveTable = box => {
  const body = box.querySelector('tbody'), rows = [...body.rows], heads = [...box.querySelectorAll('th')];
  const key = (row, i) => row.cells[i].dataset.by ?? row.cells[i].textContent;
  let sorted = -1, up = true;
  const sort = i => {
    const number = heads[i].classList.contains('right') || (rows.length && rows[0].cells[i].dataset.by !== undefined);
    up = i === sorted ? !up : !heads[i].classList.contains('right');  // the greatest figures first
    sorted = i;
    const compare = number
      ? (a, b) => parseFloat(key(a, i)) - parseFloat(key(b, i)) || 0
      : (a, b) => key(a, i).localeCompare(key(b, i), 'en', {numeric: true});
    body.append(...[...rows].sort((a, b) => up ? compare(a, b) : compare(b, a)));
    heads.forEach((head, k) => k === i ? head.setAttribute('aria-sort', up ? 'ascending' : 'descending') : head.removeAttribute('aria-sort'));
  };
  heads.forEach((head, i) => {
    const button = make('button', 'head', head.textContent);
    button.type = 'button';
    button.onclick = () => sort(i);
    head.textContent = '';
    head.append(button);
  });
  const menus = [];
  const bar = make('div', 'bar'), count = make('span', 'soft');
  count.setAttribute('role', 'status');
  const search = make('input', '');
  const filter = () => {
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase() + ' ' + (row.dataset.name || '').toLowerCase();
      row.hidden = !(words.every(word => text.includes(word)) &&
        menus.every(([menu, i]) => !menu.value || row.cells[i].textContent === menu.value));
      shown += !row.hidden;
    }
    count.textContent = shown === rows.length ? `${rows.length}` : `${shown} of ${rows.length}`;
  };
  if (box.dataset.find) {
    search.type = 'search';
    search.placeholder = box.dataset.find;
    search.setAttribute('aria-label', box.dataset.find);
    search.oninput = filter;
    bar.append(search);
  }
  heads.forEach((head, i) => {
    if (head.dataset.choose === undefined) return;
    const counts = new Map();
    for (const row of rows) counts.set(row.cells[i].textContent, (counts.get(row.cells[i].textContent) || 0) + 1);
    if (counts.size < 2) return;
    const menu = make('select', '');
    menu.setAttribute('aria-label', head.textContent);
    menu.append(new Option(`${head.textContent}: all`, ''), ...[...counts].map(([text, n]) => new Option(`${text} (${n})`, text)));
    menu.onchange = filter;
    menus.push([menu, i]);
    bar.append(menu);
  });
  if (bar.childElementCount) { bar.append(count); box.prepend(bar); filter(); }

  // On a narrow screen a table that does not fit becomes a list of its rows, each cell with the name of its column.
  const frame = box.querySelector('.wide');
  const stack = () => {
    box.classList.remove('stacked');
    if (!NARROW.matches || !frame.clientWidth || frame.scrollWidth <= frame.clientWidth + 1) return;
    const titles = heads.map(head => head.textContent);
    for (const row of rows) [...row.cells].forEach((cell, i) => { cell.dataset.title = titles[i]; });
    box.classList.add('stacked');
  };
  NARROW.addEventListener('change', stack);
  new ResizeObserver(stack).observe(box.parentElement);

  // Rows that stand for an op or a queue are chosen by a click or Enter; arrows go from one to the next.
  const named = rows.filter(row => row.dataset.name);
  named.forEach((row, i) => { row.tabIndex = i ? -1 : 0; });
  body.addEventListener('click', event => {
    const row = event.target.closest('tr[data-name]');
    if (row && !event.target.closest('a')) choose(row.dataset.name, row);
  });
  body.addEventListener('keydown', event => {
    const row = event.target.closest('tr[data-name]');
    if (!row) return;
    const step = {ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling'}[event.key];
    if (event.key === 'Enter') choose(row.dataset.name, row);
    if (!step) return;
    let next = row[step];
    while (next && (next.hidden || !next.dataset.name)) next = next[step];
    if (next) { row.tabIndex = -1; next.tabIndex = 0; next.focus(); }
    event.preventDefault();
  });
};
