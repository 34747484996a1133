// What is alive in a page: parts that unpack when they are opened, tables, pictures of the core grid, and what is
// chosen, which tables, pictures and timelines of a scope (an epoch, a netlist) show alike.

const make = (kind, css, text = '') => Object.assign(document.createElement(kind), {className: css, textContent: text});

// ------------------------------------------------------------------------------------------------ packed parts
const unpack = async part => {
  const script = part.querySelector(':scope > script.packed');
  if (!script) return part.ready;
  script.remove();
  const bytes = Uint8Array.from(atob(script.textContent), letter => letter.charCodeAt(0));
  const body = make('div', 'body');
  part.ready = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))).text().then(html => {
    body.innerHTML = html;
    part.append(body);
    enliven(body);
  });
  return part.ready;
};
const enliven = root => {
  root.querySelectorAll('.table').forEach(liveTable);
  root.querySelectorAll('.grid-view').forEach(gridView);
  root.querySelectorAll('.timeline').forEach(timeline);
  root.querySelectorAll('details').forEach(part => {
    part.addEventListener('toggle', () => { if (part.open) unpack(part); });
    if (part.open) unpack(part);
  });
};

// ------------------------------------------------------------------------------------------------------- tables
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

// ------------------------------------------------------------------------------------------------ the core grid
const gridView = view => {
  const svg = view.querySelector('svg'), box = view.querySelector('.grid-svg');
  if (!svg) return;
  const [, , wide, high] = svg.getAttribute('viewBox').split(' ').map(Number);
  svg.removeAttribute('width');
  svg.removeAttribute('height');
  const labels = [...svg.querySelectorAll('.bg-op, .bg-queue')].map(group => {
    const rect = group.querySelector('rect'), place = name => parseFloat(rect.getAttribute(name));
    const texts = [...group.querySelectorAll('text')];
    const words = texts.map(text => text.dataset.full ?? text.textContent);
    texts.slice(1).forEach(text => text.remove());
    return {text: texts[0], words, x: place('x'), y: place('y'), width: place('width'), height: place('height'), group};
  });
  for (const label of labels) {  // places within the whole picture
    const panel = label.group.closest('g[transform]').transform.baseVal[0].matrix;
    label.left = label.x + panel.e;
    label.top = label.y + panel.f;
  }
  const ops = labels.filter(label => label.group.classList.contains('bg-op'));
  let x = 0, y = 0, scale = 1, width = 0, height = 1, waiting = false, touched = false;

  const WIDTH = 0.62, LINE = 1.22;
  const lines = (words, most, count) => {  // a name over as many lines as there are, then what else fits
    const [name, ...rest] = words, found = [], own = Math.max(1, count - Math.min(rest.length, 1));
    for (let at = 0; at < name.length && found.length < own; at += most) found.push(name.slice(at, at + most));
    if (name.length > own * most) found[own - 1] = '…' + name.slice(1 - most);
    const named = found.length;
    for (const word of rest) if (found.length < count && word.length <= most) found.push(word);
    return [found, named];
  };
  const draw = () => {
    waiting = false;
    svg.setAttribute('viewBox', `${x} ${y} ${width / scale} ${height / scale}`);
    const size = Math.min(Math.max(11 * scale, 11), 14) / scale;
    for (const label of labels) {
      const {text, words} = label;
      const away = label.left > x + width / scale || label.top > y + height / scale || label.left + label.width < x || label.top + label.height < y;
      const most = Math.floor((label.width - 8 / scale) / (size * WIDTH)), count = Math.floor((label.height - 4 / scale) / (size * LINE));
      text.textContent = '';
      if (away || most < 4 || count < 1) continue;
      text.setAttribute('font-size', size);
      const [found, named] = lines(words, most, count);
      found.forEach((line, i) => {
        const span = document.createElementNS('http://www.w3.org/2000/svg', 'tspan');
        span.textContent = line;
        span.setAttribute('x', label.x + 4 / scale);
        span.setAttribute('y', label.y + 3 / scale + size * (LINE * i + 0.9));
        if (i >= named) span.setAttribute('class', 'more');
        text.append(span);
      });
    }
  };
  const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  const clamp = () => {
    const least = Math.min(width / wide, height / high) * 0.9;
    scale = Math.min(Math.max(scale, least), 8);
    const keep = (at, room, size) => room >= size ? (size - room) / 2 : Math.min(Math.max(at, -20 / scale), size - room + 20 / scale);
    x = keep(x, width / scale, wide);
    y = keep(y, height / scale, high);
  };
  const show = (left, top, right, bottom) => {
    scale = Math.min(width / (right - left), height / (bottom - top), 2);
    x = (left + right - width / scale) / 2;
    y = (top + bottom - height / scale) / 2;
    clamp();
    redraw();
  };
  const all = () => show(0, 0, wide, high);
  const theOps = () => {
    const of = (list, edge) => list.reduce(edge, edge === Math.min ? Infinity : -Infinity);
    if (!ops.length) return all();
    let [left, top, right, bottom] = [Infinity, Infinity, 0, 0];
    for (const op of ops) {
      [left, top] = [Math.min(left, op.left), Math.min(top, op.top)];
      [right, bottom] = [Math.max(right, op.left + op.width), Math.max(bottom, op.top + op.height)];
    }
    show(left - 40, top - 30, right + 20, bottom + 20);
  };
  const zoom = (factor, px = width / 2, py = height / 2) => {
    touched = true;
    const before = scale, [u, v] = [x + px / scale, y + py / scale];
    scale *= factor;
    clamp();
    if (scale !== before) { x = u - px / scale; y = v - py / scale; }
    clamp();
    redraw();
  };
  const pan = (dx, dy) => { touched = true; x -= dx / scale; y -= dy / scale; clamp(); redraw(); };
  const resize = () => {
    if (!box.clientWidth || box.clientWidth === width) return;
    const [u, v] = [x + width / scale / 2, y + height / scale / 2];
    width = box.clientWidth;
    height = Math.max(260, Math.min(innerHeight * 0.74, width * Math.max(high / wide, 0.6)));
    box.style.height = height + 'px';
    if (!touched) return theOps();
    x = u - width / scale / 2;
    y = v - height / scale / 2;
    clamp();
    redraw();
  };

  view.querySelectorAll('button[data-do]').forEach(button => {
    button.onclick = {in: () => zoom(1.5), out: () => zoom(1 / 1.5), all, ops: theOps}[button.dataset.do];
  });
  const pointers = new Map();
  let moved = 0;
  box.addEventListener('pointerdown', event => { pointers.set(event.pointerId, event); moved = 0; });
  addEventListener('pointermove', event => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const others = [...pointers.values()].filter(other => other.pointerId !== event.pointerId);
    if (others.length) {
      const far = one => Math.max(Math.hypot(one.clientX - others[0].clientX, one.clientY - others[0].clientY), 8);
      const at = box.getBoundingClientRect();
      zoom(far(event) / far(before), (event.clientX + others[0].clientX) / 2 - at.left, (event.clientY + others[0].clientY) / 2 - at.top);
    }
    moved += Math.abs(event.clientX - before.clientX) + Math.abs(event.clientY - before.clientY);
    if (moved > 3) pan((event.clientX - before.clientX) / (others.length + 1), (event.clientY - before.clientY) / (others.length + 1));
    pointers.set(event.pointerId, event);
  });
  for (const kind of ['pointerup', 'pointercancel']) addEventListener(kind, event => pointers.delete(event.pointerId));
  box.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey) return;  // the page scrolls on
    const at = box.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.004), event.clientX - at.left, event.clientY - at.top);
    event.preventDefault();
  }, {passive: false});
  view.addEventListener('keydown', event => {
    const keys = {
      '+': () => zoom(1.4), '=': () => zoom(1.4), '-': () => zoom(1 / 1.4), '0': all,
      ArrowLeft: () => pan(60, 0), ArrowRight: () => pan(-60, 0), ArrowUp: () => pan(0, 60), ArrowDown: () => pan(0, -60),
    };
    if (!keys[event.key] || event.target !== view) return;
    keys[event.key]();
    event.preventDefault();
  });
  svg.addEventListener('click', event => {
    const group = event.target.closest('[data-name]');
    if (moved <= 3) choose(group ? group.dataset.name : '', view);
  });
  view.mark = (name, producers, consumers) => {
    svg.classList.toggle('choosing', Boolean(name));
    for (const group of svg.querySelectorAll('[data-name]')) {
      const own = group.dataset.name;
      group.classList.toggle('here', own === name);
      group.classList.toggle('near', producers.has(own) || consumers.has(own));
    }
    for (const edge of svg.querySelectorAll('.bg-edge')) {
      edge.classList.toggle('from', edge.dataset.to === name);
      edge.classList.toggle('to', edge.dataset.from === name);
    }
    const label = labels.find(item => item.group.dataset.name === name);
    if (!label) return;
    const [u, v] = [label.left + label.width / 2, label.top + label.height / 2];
    if (u < x || v < y || u > x + width / scale || v > y + height / scale) {
      x = u - width / scale / 2;
      y = v - height / scale / 2;
      clamp();
    }
    redraw();
  };
  new ResizeObserver(resize).observe(box);
  resize();
};

// ------------------------------------------------------------------------------------------------ what is chosen
const panel = make('aside', 'chosen');
panel.hidden = true;
panel.setAttribute('aria-live', 'polite');
const scopeOf = item => item.closest('.scope') || document.body;
const choose = (name, from, {show = '', toggles = true} = {}) => {
  const scope = scopeOf(from);
  if (scope.dataset.chosen === name && toggles) name = '';
  scope.dataset.chosen = name;
  const producers = new Set(), consumers = new Set();
  for (const edge of scope.querySelectorAll('.bg-edge')) {
    if (edge.dataset.to === name) producers.add(edge.dataset.from);
    if (edge.dataset.from === name) consumers.add(edge.dataset.to);
  }
  scope.querySelectorAll('.grid-view').forEach(view => view.mark && view.mark(name, producers, consumers));
  scope.querySelectorAll('.timeline').forEach(view => view.mark && view.mark(name, new Set([...producers, ...consumers])));
  scope.querySelectorAll('tr[data-name], .dot, .yaml [data-name]').forEach(item => item.classList.toggle('here', Boolean(name) && item.dataset.name === name));
  tell(name, scope, producers, consumers);
  for (const item of scope.querySelectorAll('tr.here, .yaml .here')) {  // within its own list, never the page
    const list = item.closest('.tall');
    const [a, b] = list ? [item.getBoundingClientRect(), list.getBoundingClientRect()] : [];
    if (list && (a.top < b.top + 30 || a.bottom > b.bottom)) list.scrollTop += a.top - b.top - list.clientHeight / 2;
  }
  if (show) scope.querySelector(show)?.scrollIntoView({block: 'center'});
};
const tell = (name, scope, producers, consumers) => {
  panel.hidden = !name;
  document.body.classList.toggle('telling', Boolean(name));
  if (!name) return;
  panel.textContent = '';
  const head = make('div', 'bar'), close = make('button', '', '×');
  close.type = 'button';
  close.title = 'close (Esc)';
  close.onclick = () => choose('', scope);
  head.append(make('b', '', name), close);
  panel.append(head);
  const row = scope.querySelector(`.ops tr[data-name="${CSS.escape(name)}"]`);
  if (row) {
    const heads = [...row.closest('table').querySelectorAll('th')].map(item => item.textContent);
    const facts = make('p', 'soft');
    facts.textContent = [...row.cells].slice(1).map((cell, i) => `${heads[i + 1]} ${cell.textContent}`).join(' · ');
    panel.append(facts);
  }
  for (const [what, css, names] of [['reads', 'from', producers], ['feeds', 'to', consumers]]) {
    if (!names.size) continue;
    const line = make('p', 'near ' + css, what + ' ');
    for (const other of names) {
      const button = make('button', '', other);
      button.type = 'button';
      button.onclick = () => choose(other, scope);
      line.append(button, ' ');
    }
    panel.append(line);
  }
  const line = scope.querySelector(`.yaml [data-name="${CSS.escape(name)}"]`);
  if (line) {
    const text = make('pre', '', line.textContent), go = make('button', '', line.dataset.place);
    text.tabIndex = 0;
    go.type = 'button';
    go.title = 'show the lines around it';
    go.onclick = () => { line.closest('details').open = true; line.closest('.tall').scrollTop = line.offsetTop - 60; line.closest('details').scrollIntoView(); };
    panel.append(go, text);
  }
};
document.addEventListener('keydown', event => {
  if (event.key !== 'Escape' || panel.hidden) return;
  for (const scope of document.querySelectorAll('[data-chosen]')) if (scope.dataset.chosen) choose('', scope);
});
document.addEventListener('chosen', event => {
  const known = name => scopeOf(event.target).querySelector(`.grid-view [data-name="${CSS.escape(name)}"]`);
  const name = [event.detail, ...event.detail.replace(/^.*: /, '').split(' > ')].find(known);
  if (name) choose(name, event.target, {toggles: false});
});
document.addEventListener('click', event => {
  const item = event.target.closest('.yaml [data-name], .dot');
  if (item) choose(item.dataset.name, item);
});

// --------------------------------------------------------------------------------- from the head of a page to a part
const open = async id => {
  const part = document.getElementById(id);
  if (!part) return null;
  part.open = true;
  await unpack(part);
  return part;
};
const finder = box => {
  const index = JSON.parse(box.querySelector('script').textContent), input = box.querySelector('input'), list = box.querySelector('.found');
  const go = async ([name, , id]) => {
    const part = await open(id);
    if (!part) return;
    list.textContent = '';
    choose(name, part.querySelector('.scope') || part, {show: '.grid-view', toggles: false});
  };
  input.oninput = () => {
    const words = input.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    list.textContent = '';
    if (!words.length) return;
    const hits = index.filter(item => words.every(word => `${item[0]} ${item[1]} ${item[2]}`.toLowerCase().includes(word)));
    for (const hit of hits.slice(0, 30)) {
      const button = make('button', '', hit[0]);
      button.type = 'button';
      button.append(make('span', 'soft', ` ${hit[1]}, ${hit[3]}`));
      button.onclick = () => go(hit);
      list.append(button);
    }
    list.append(make('span', 'soft', hits.length > 30 ? `and ${hits.length - 30} more` : hits.length ? '' : 'nothing found'));
  };
  input.onkeydown = event => { if (event.key === 'Enter') list.querySelector('button')?.click(); };
};
const toHash = async () => {
  const part = location.hash.length > 1 && await open(decodeURIComponent(location.hash.slice(1)));
  if (part) part.scrollIntoView();
};
document.body.append(panel);
enliven(document.body);
document.querySelectorAll('.finder').forEach(finder);
addEventListener('hashchange', toHash);
toHash();
